"""How metrics and methods are called, scaled and ordered wherever a person reads them.

The scales (`power`: printed value = value x 10^power) and headings are those of the paper's tables
(section 4 and appendix "Extended Results"), so a printed cell can be held against the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Metric:
    """One column: `latex`, `html` and `text` are headings without the scale."""

    key: str
    text: str
    html: str
    latex: str
    power: int
    larger_is_better: bool = False

    @property
    def scale(self) -> str:
        """The scale as plain text, such as `×10²`."""
        return f"×10{str(self.power).translate(SUPERSCRIPTS)}"


def _utility(key: str, name: str, power: int) -> Metric:
    return Metric(
        key,
        text=f"U_{name}",
        html=f"U<sub>{name}</sub>",
        latex=rf"$\mathcal{{U}}_{{\mathrm{{{name}}}}}$",
        power=power,
    )


def _binned(key: str, name: str, power: int) -> Metric:
    return Metric(
        key,
        text=f"{name}_bin",
        html=f"{name}<sup>bin</sup>",
        latex=rf"$\mathrm{{{name}}}^{{\mathrm{{bin}}}}$",
        power=power,
    )


METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric("accuracy", "Accuracy", "Accuracy", "Accuracy", 2, larger_is_better=True),
        Metric("brier", "Brier", "Brier score", "Brier Score", 2),
        Metric("nll", "NLL", "NLL", "NLL", 2),
        _binned("cwe_bin", "CWE", 4),
        _binned("tce_bin", "TCE", 3),
        _utility("u_cwe", "CWE", 4),
        _utility("u_topk", "topK", 3),
        _utility("u_tce", "TCE", 3),
        _utility("u_comb", "comb", 3),
        _utility("u_dcg", "dcg", 3),
        _utility("u_w2v", "w2v", 3),
    )
}

METHODS: dict[str, str] = {
    "uncalibrated": "Uncalibrated",
    "dirichlet": "Dirichlet",
    "isotonic": "IR",
    "temperature": "Temp. Scaling",
    "vector": "Vector Scaling",
    "patching": "Patching",
}

VARIANT_WORDS: dict[str, str] = {
    "raw": "unnormalised",
    "global": "global",
    "logits": "on logits",
    "log_probabilities": "on log-probabilities",
    "weak": "weak penalty",
    "armijo": "Armijo 1e-4",
    "brier": "tuned by Brier",
}

PAPER_METRICS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")
TABLE_ONE_METRICS = ("brier", "cwe_bin", "tce_bin", "u_comb")

NOISE_FLOOR = "Noise floor"
FLOOR_METHOD = "temperature"


def metric(key: str) -> Metric:
    """The column of a metric key; an own utility's key gets a plain heading and the scale 10³."""
    if key in METRICS:
        return METRICS[key]
    escaped = key.replace("_", r"\_")
    return Metric(key, text=key, html=escape(key), latex=rf"\texttt{{{escaped}}}", power=3)


def family(method: str) -> str:
    """The printed method that a variant belongs to: `isotonic_raw` -> `isotonic`."""
    roots = [key for key in METHODS if method == key or method.startswith(f"{key}_")]
    return roots[0] if roots else method


def method_name(method: str) -> str:
    """The name shown to people: `isotonic` -> `IR`, `isotonic_raw` -> `IR (unnormalised)`."""
    root = family(method)
    if root not in METHODS:
        return method.replace("_", " ").capitalize()
    variant = method[len(root) + 1 :]
    if not variant:
        return METHODS[root]
    return f"{METHODS[root]} ({VARIANT_WORDS.get(variant, variant.replace('_', ' '))})"


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the paper's row order; variants follow their family, unknown names come last."""
    families = list(METHODS)

    def place(method: str) -> tuple[int, str]:
        root = family(method)
        return (families.index(root) if root in families else len(families), method)

    return sorted(methods, key=place)
