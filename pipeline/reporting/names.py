"""How methods are called and ordered wherever a person reads them (metrics: metrics/registry.py).

looks.yaml says it: a method's title and its line in figures, in the order of the tables' rows.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from utility_calibration.metrics.registry import metric

from ..scoring.uses import is_use, label_of

SHOWN: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("looks.yaml").read_text(encoding="utf-8")
)
"""How each method is shown, in the order of rows."""
TITLES: dict[str, str] = {key: shown["title"] for key, shown in SHOWN.items()}
PEERS = [key for key, shown in SHOWN.items() if shown.get("peer", False)]
"""Calibrators of other packages (calibrators/wrapped.py): rows of the suite `extended` only."""
METHODS = {key: title for key, title in TITLES.items() if key not in PEERS}

VARIANT_WORDS: dict[str, str] = {
    "raw": "unnormalised",
    "global": "global",
    "jaxopt": "JAXopt's line search",
    "brier": "by Brier score",
    "adam": "by Adam",
    "groups": "by group",
    "temperature": "from temperature",
    "60": "untuned, 60 steps",
}

MARK = "†"  # behind every number beyond its noise floor, and in the grid of a verdict
BEYOND_CHANCE = "larger than chance alone explains (by chance alone 1 time in 20)"
"""What MARK means, in a grid and below a table."""
FLOOR_METHOD = "temperature"


def family(method: str) -> str:
    """The printed method that a variant belongs to: `isotonic_raw` -> `isotonic`."""
    roots = [key for key in TITLES if method == key or method.startswith(f"{key}_")]
    return roots[0] if roots else method


def method_name(method: str) -> str:
    """The name shown to people: `isotonic` -> `IR`, `isotonic_raw` -> `IR (unnormalised)`."""
    root = family(method)
    if root not in TITLES:
        return method.replace("_", " ").capitalize()
    variant = method[len(root) + 1 :]
    if not variant:
        return TITLES[root]
    return f"{TITLES[root]} ({VARIANT_WORDS.get(variant, variant.replace('_', ' '))})"


def heading_of(key: str) -> str:
    """A metric with the use that it measures: `Shortlists (U_topK)`."""
    text = metric(key).text
    return f"{label_of(key).capitalize()} ({text})" if is_use(key) else text


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the paper's row order, then other packages', then unknown ones, by family."""
    return sorted(methods, key=lambda m: ([*TITLES, family(m)].index(family(m)), m))
