"""The line of each method, in figures and on pages.

Colours are the Okabe-Ito set, its blue darkened away from the sky blue; for other packages' methods
(thin lines) Tol's muted set. Readers with a colour vision deficiency can tell both apart, and line
styles do so in print. A variant shares its method's hue and line, not its shade and marker.
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
SHADES = ((1.0, 0.35), (0.0, 0.3))
"""Of variants: a grey (0: black, 1: white), and how much of the way to it their colour is."""


def look(method: str) -> LineLook:
    """The look that conf/calibrator asks for; a variant has its family's, shaded and marked."""
    root, base = family(method), OTHER
    if shown := SHOWN.get(root):
        dash: Dash = "solid" if shown["dash"] == "solid" else (0, tuple(shown["dash"]))
        base = LineLook(shown["color"], dash, shown.get("width", LineLook.width))
    if method in SHOWN:
        return base
    variant = method[len(root) + 1 :] or method
    number = [*VARIANT_WORDS, variant].index(variant)
    grey, amount = SHADES[number % len(SHADES)]
    parts = (value / 255 for value in bytes.fromhex(base.color[1:]))
    mixed = bytes(round(255 * (part + amount * (grey - part))) for part in parts)
    color, marker = f"#{mixed.hex()}", MARKERS[number % len(MARKERS)]
    return replace(base, color=color, width=1.3, marker=marker)
