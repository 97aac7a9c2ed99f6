"""How methods are called and ordered wherever a person reads them (metrics: metrics/registry.py).

A file of conf/calibrator says it under `shown`: the place of the method's row in tables, its title,
and its line in figures. A file without it is a variant: its name begins with that of its method.
"""

from collections.abc import Iterable
from typing import Any

import yaml

from ..harness.parameters import CONF

_PATHS = sorted((CONF / "calibrator").glob("*.yaml"))
FILES = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in _PATHS}
_NAMED = {key: content["shown"] for key, content in FILES.items() if "shown" in content}
SHOWN: dict[str, dict[str, Any]] = dict(sorted(_NAMED.items(), key=lambda item: item[1]["row"]))
"""How each method is shown, in the order of rows."""
TITLES: dict[str, str] = {key: shown["title"] for key, shown in SHOWN.items()}
PEERS = [key for key in SHOWN if FILES[key]["_target_"].endswith("PeerCalibration")]
"""Calibrators of other packages (calibrators/peers.py): rows of the suite `extended` only."""
METHODS = {key: title for key, title in TITLES.items() if key not in PEERS}

VARIANT_WORDS: dict[str, str] = {
    "raw": "unnormalised",
    "global": "global",
    "logits": "on logits",
    "log_probabilities": "on log-probabilities",
    "armijo": "Armijo 1e-4",
    "brier": "by Brier score",
    "groups": "by group",
    "60": "untuned, 60 steps",
}

NOISE_FLOOR = "Noise floor"
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


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the paper's row order, then other packages', then unknown ones, by family."""
    return sorted(methods, key=lambda m: ([*TITLES, family(m)].index(family(m)), m))
