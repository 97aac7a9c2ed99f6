"""Decide on one benchmark, once, from its scores: per method and metric, and on the whole."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.registry import metric
from utility_calibration.metrics.shown import ALL_CLASSES

from . import inference
from .decisions import (
    COLUMNS,
    FEWEST_OF_A_CLASS,
    FEWEST_POINTS,
    HARMED,
    INFINITE,
    Decision,
    Decisions,
    Rarest,
)
from .files import ALL_SPLITS, Scores


class _Measured:
    """What the scores of a benchmark say of some methods."""

    def __init__(self, scores: Scores, methods: Sequence[str]) -> None:
        rows = scores.own_rows()
        rows = rows[rows["calibrator"].isin(list(methods))]
        is_mean = rows["split"] == ALL_SPLITS
        self.means: dict[tuple[str, str], dict[Any, Any]] = {}
        """By method and metric the row of all splits; that of ALL_CLASSES has no mean."""
        for row in rows[is_mean].to_dict("records"):
            self.means[row["calibrator"], row["metric"]] = row
        self.values = rows[~is_mean].groupby(["calibrator", "metric"])["value"].agg(list)
        """By method and metric a value per split."""

    def has(self, method: str, key: str) -> bool:
        """Whether a method has a mean of a metric."""
        row = self.means.get((method, key))
        return row is not None and not math.isnan(row["value"])

    def metrics(self) -> list[str]:
        """The metrics of which some method has a mean, in their order."""
        pairs = [pair for pair in self.means if self.has(*pair)]
        return list(dict.fromkeys(key for _, key in pairs))


def decide(
    scores: Scores, methods: Sequence[str], shown: Sequence[str] = (), more: Sequence[str] = ()
) -> Decisions:
    """The decisions on the points of `scores`, for these of its methods.

    Args:
        scores: of a benchmark, or of a group of its points.
        methods: calibrators that were scored.
        shown: the metrics of the report, all if there are none; one that no method has (U_w2v
            without word vectors) is left out.
        more: further metrics that every method needs.

    Raises:
        InputError: a method lacks a metric.
    """
    measured = _Measured(scores, methods)
    metrics = measured.metrics()
    shown = [key for key in shown or metrics if key in metrics]
    needed = [key for key in (*shown, *more) if key in metrics]
    _check_complete(scores, measured, methods, needed)
    keys = [key for key in metrics if all(measured.has(method, key) for method in methods)]
    rarest = None
    if scores.facts["logits"].get("rarest_class") is not None:
        of_classes = [measured.means[method, "u_cwe"] for method in methods if "u_cwe" in keys]
        rarest = _rarest(scores.facts["logits"], scores.test_share, of_classes)
    rows: dict[tuple[str, str], Decision] = {}
    for key in keys:
        for method, row in _rows_of_metric(scores, measured, methods, key, rarest).items():
            rows[method, key] = row
    splits = len(measured.values[methods[0], keys[0]])
    points = int(measured.means[methods[0], keys[0]]["n_test"])
    is_tested = any(row.not_worse is not None for row in rows.values())
    test = ""
    if is_tested:
        test = "corrected" if splits >= inference.FEWEST_SPLITS else "bootstrap"
    users, marks = {}, {}
    for method in methods:
        bound = measured.means.get((method, ALL_CLASSES), {}).get("upper", math.nan)
        users[method] = float(bound)
        record = scores.facts["calibrators"].get(method, {})
        marks[method] = _marks(rows.get((method, "nll")), record)
    return Decisions(
        rows={(method, key): rows[method, key] for method in methods for key in keys},
        shown=shown,
        test=test,
        splits=splits,
        test_points=points,
        refused=refusal(points, rarest, scores.facts["logits"]),
        users=users,
        marks=marks,
        rarest=None if scores.group else rarest,  # a group may have fewer
        clusters=int(scores.facts["logits"].get("clusters", 0)),
    )


def _check_complete(
    scores: Scores, measured: _Measured, methods: Sequence[str], needed: Sequence[str]
) -> None:
    """Raise `InputError` for the first method without a metric that is needed."""
    absent = []
    for method in methods:
        absent += [(method, key) for key in needed if not measured.has(method, key)]
    if not needed:
        absent.append((methods[0], "any metric"))
    if absent:
        method, key = absent[0]
        raise InputError(
            f"{scores.benchmark}: {method} has no value of {key}",
            fixes="evaluate it again with utility-calibration evaluate "
            f"benchmark={scores.benchmark} calibrator={method}",
        )


def _rows_of_metric(
    scores: Scores, measured: _Measured, methods: Sequence[str], key: str, rarest: Rarest | None
) -> dict[str, Decision]:
    """What is decided of one metric, by method."""
    share = scores.test_share
    values = {method: measured.values[method, key] for method in methods}
    floors = None
    if metric(key).has_floor:
        floors = {method: measured.means[method, key]["p_value"] for method in methods}
    compared = inference.against_best(
        values,
        share,
        draws={method: scores.draws(method).get(key, ()) for method in methods},
        larger_is_better=metric(key).larger_is_better,
        floors=floors,
        is_weighted=bool(scores.facts["logits"].get("weights")),
    )
    rows = {}
    for method in methods:
        together = scores.together(method).get(key)
        row = measured.means[method, key]
        alone = _decision(row, together, values[method], share, rarest)
        rows[method] = Decision(**alone, **compared[method]._asdict())
    return rows


def _marks(nll: Decision | None, record: Mapping[str, Any]) -> tuple[str, ...]:
    """The marks of a method, from its likelihood and the record of its fits."""
    marks = []
    if nll is not None and nll.zero_likelihood > 0:
        marks.append(INFINITE)
    if any(record.get("worse_than_temperature", ())):
        marks.append(HARMED)
    return tuple(marks)


def _decision(
    row: Mapping[Any, Any],
    together: float | None,
    values: Sequence[float],
    share: float,
    rarest: Rarest | None,
) -> dict[str, Any]:
    """What is decided of a method and metric by itself, from its `row` of all splits."""
    p_value = row["p_value"] if together is None else together
    corrected = inference.corrected_half_width(values, share)
    bootstrap = row["half_width"]
    is_resampled = not math.isnan(bootstrap)
    beyond = None if math.isnan(p_value) else bool(p_value <= inference.SIZE)
    within = None if beyond is None else not beyond
    if row["metric"] == "u_cwe" and rarest is not None and rarest.tested < rarest.needed:
        # So few points could hide an error of the rarest class, so "within noise" is not known.
        within = False if beyond else None
    as_written = {name: row[name] for name in COLUMNS if name in row}  # floor and certificate
    decided = {
        "method": row["calibrator"],
        "mean": row["value"],
        "two_se": inference.two_standard_errors(values),
        "splits": len(values),
        "p_together": p_value,
        "beyond_floor": beyond,
        "within_noise": within,
        "half_width": bootstrap if is_resampled else corrected,
        "interval": "bootstrap" if is_resampled else "corrected",
        "half_width_corrected": corrected,
        "half_width_bootstrap": bootstrap,
    }
    return {**as_written, **decided}


def _rarest(logits: Mapping[str, Any], share: float, rows: Sequence[Mapping[Any, Any]]) -> Rarest:
    """The rarest class; `rows`: those of U_CWE, one of each method."""
    needed = 0
    for row in rows:
        floor = row["floor_q95"]
        if math.isfinite(floor):
            needed = max(needed, inference.fewest_positives(row["n_test"], floor))
    return Rarest(
        points=int(logits["rarest_class"]),
        n=int(logits["n"]),
        share=share,
        needed=needed,
        name=str(logits.get("rarest_class_name", "")),
    )


def refusal(points: int, rarest: Rarest | None, logits: Mapping[str, Any]) -> str:
    """Why nothing is recommended for a classifier or for so few test points; else empty."""
    if logits.get("below_chance"):
        return (
            "No method is recommended, because the classifier is worse than guessing: it is right "
            f"for {logits['accuracy']:.1f} % of the cases. Check that the columns are in the "
            "order of the classes."
        )
    if points < FEWEST_POINTS:
        in_all = math.ceil(FEWEST_POINTS * logits["n"] / points / 10) * 10
        return (
            "The file is too small to recommend a method: it has "
            f"{logits['n']:,} cases, and about {in_all:,} are needed."
        )
    if rarest is not None and rarest.tested < FEWEST_OF_A_CLASS:
        needed = math.ceil(FEWEST_OF_A_CLASS / rarest.share)
        return (
            "Some class has too few cases to recommend a method: the rarest class has "
            f"{rarest.points} in all, and at least {needed} are needed so that every test has some."
        )
    return ""
