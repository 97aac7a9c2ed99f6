"""The line of each method, in figures and on pages.

Colours are the Okabe-Ito set and, for other packages' methods (thin lines), Tol's muted set.
Those of less contrast than 3 : 1 against a white page are darkened. Readers with a colour vision
deficiency can tell both sets apart, and line styles do so in print. A variant shares its method's
hue and line, not its shade and marker.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from .names import SHOWN, VARIANT_WORDS, family

Dash = Literal["solid"] | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class LineLook:
    """How a method is drawn."""

    color: str
    dash: Dash = "solid"
    width: float = 1.6
    marker: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """As matplotlib's `plot` takes it, the marker aside."""
        return {"color": self.color, "linestyle": self.dash, "linewidth": self.width}


CURVE = "curve: "  # begins the name of a curve in an SVG; a page shows the rest at a pointer
OTHER = LineLook("#7A7A7A", (0, (4, 1, 2, 1)))
MARKERS = "osD^vPX"
SHADES = (0.25, 0.5)
"""Of variants: how much of the way to black their colour is. Paler ones would be hard to see."""


def look(method: str) -> LineLook:
    """The look in looks.yaml; a variant has its family's, shaded and marked."""
    root, base = family(method), OTHER
    shown = SHOWN.get(root)
    if shown:
        dash: Dash = "solid" if shown["dash"] == "solid" else (0, tuple(shown["dash"]))
        base = LineLook(shown["color"], dash, shown.get("width", LineLook.width))
    if method in SHOWN:
        return base
    variant = method[len(root) + 1 :] or method
    number = [*VARIANT_WORDS, variant].index(variant)
    amount = SHADES[number % len(SHADES)]
    mixed = bytes(round((1 - amount) * value) for value in bytes.fromhex(base.color[1:]))
    color, marker = f"#{mixed.hex()}", MARKERS[number % len(MARKERS)]
    return replace(base, color=color, width=1.3, marker=marker)
