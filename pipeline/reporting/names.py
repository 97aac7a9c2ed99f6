"""How methods are called and ordered wherever a person reads them (metrics: metrics.registry)."""

from __future__ import annotations

from collections.abc import Iterable

METHODS: dict[str, str] = {
    "uncalibrated": "Uncalibrated",
    "dirichlet": "Dirichlet",
    "isotonic": "IR",
    "temperature": "Temp. Scaling",
    "vector": "Vector Scaling",
    "patching": "Patching",
    "structured_matrix": "SMS",  # from here on beyond the paper
    "structured_vector": "SVS",
    "logit_shift": "Logit-shift patching",
}

PEERS: dict[str, str] = {
    "ensemble_temperature": "Ensemble temp. scaling",
    "beta": "Beta",
    "venn_abers": "Venn–Abers",
    "histogram": "Histogram binning",
    "spline": "Spline",
    "centred_isotonic": "Centred IR",
    "order_preserving": "Intra-order-preserving",
}
"""Calibrators of other packages (calibrators.peers): rows of the suite `extended` only."""

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
_NAMES = METHODS | PEERS


def family(method: str) -> str:
    """The printed method that a variant belongs to: `isotonic_raw` -> `isotonic`."""
    roots = [key for key in _NAMES if method == key or method.startswith(f"{key}_")]
    return roots[0] if roots else method


def method_name(method: str) -> str:
    """The name shown to people: `isotonic` -> `IR`, `isotonic_raw` -> `IR (unnormalised)`."""
    root = family(method)
    if root not in _NAMES:
        return method.replace("_", " ").capitalize()
    variant = method[len(root) + 1 :]
    if not variant:
        return _NAMES[root]
    return f"{_NAMES[root]} ({VARIANT_WORDS.get(variant, variant.replace('_', ' '))})"


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the paper's row order, then other packages'; variants follow their family.

    Unknown names come last.
    """
    families = list(_NAMES)

    def place(method: str) -> tuple[int, str]:
        return ([*families, family(method)].index(family(method)), method)

    return sorted(methods, key=place)
