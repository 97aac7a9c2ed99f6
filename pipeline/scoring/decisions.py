"""The decisions on one benchmark: per method and metric what was measured and what the tests say.

They are made once, from the scores. Verdict, leaderboard, tables and pages decide nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import pandas as pd

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.registry import metric
from utility_calibration.metrics.shown import ALL_CLASSES

from . import inference
from .files import ALL_SPLITS, Scores

FEWEST_POINTS = 200  # test points of a split below which no method is recommended
FEWEST_OF_A_CLASS = 3  # expected test points of the rarest class; with fewer, many splits lack it
INFINITE, HARMED = "∞", "▽"
"""Marks of a method: some label had probability 0; fitted worse than temperature scaling."""


@dataclass(frozen=True)
class Rarest:
    """The rarest class has `points` of `n`; a test part has a `share` of all points.

    name: of the class, "" where it is not known. needed: so many in a test part let U_CWE tell
    whether its forecasts are off by half (scoring/inference.py), with every method.
    """

    points: int
    n: int
    share: float
    needed: int = 0
    name: str = ""

    @property
    def tested(self) -> float:
        """How many of its points a test part has on average."""
        return self.points * self.share


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One method and metric, unscaled; the fields are the columns of the tables' CSV files.

    two_se: the paper's spread. half_width: of the 95 % `interval`, "bootstrap" where the points
    were resampled, else "corrected"; both follow (pipeline/scoring/inference.py). floor_mean,
    floor_q95, p_value: of the mean over splits, from the method's own probabilities. p_together: of
    all groups of a table, or all own utilities, together (families.py); p_value where there is one
    alone. beyond_floor: p_together <= 5 %, None without a floor. within_noise: not that; None where
    it is not known, also of U_CWE where the rarest class has too few points. difference…: against
    the method of the best mean. not_worse: after Holm's steps no test finds the method worse, None
    without a test.
    zero_likelihood: points per split whose label had probability 0. The last four bound the error.
    """

    method: str
    metric: str
    mean: float
    two_se: float
    splits: int
    floor_mean: float
    floor_q95: float
    p_value: float
    p_together: float
    beyond_floor: bool | None
    within_noise: bool | None
    half_width: float
    interval: str
    half_width_corrected: float
    half_width_bootstrap: float
    difference: float
    difference_half_width: float
    difference_p: float
    not_worse: bool | None
    zero_likelihood: float
    estimate: float
    lower: float
    upper: float
    upper_finite: float

    @property
    def is_one_of_many(self) -> bool:
        """Whether its error was tested together with those of other groups or own utilities."""
        return math.isfinite(self.p_together) and self.p_together != self.p_value


COLUMNS = tuple(field.name for field in fields(Decision))


@dataclass(frozen=True)
class Decisions:
    """The decisions on all points of a benchmark, or on one group of them.

    shown: the metrics of the report, from which verdict and leaderboard count; `rows` have all that
    were measured. test: what compares the methods, over splits ("corrected") or over points
    ("bootstrap"); "" where nothing does. refused: why no method is recommended, whatever the tests
    say. users: by method the 95 % upper bound on the error of any user, mean over splits. marks: by
    method the signs of what speaks against it. clusters: how many there are, 0 without any.
    """

    rows: Mapping[tuple[str, str], Decision]
    shown: Sequence[str]
    test: str
    splits: int
    test_points: int
    refused: str = ""
    users: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rarest: Rarest | None = None
    clusters: int = 0

    @property
    def methods(self) -> list[str]:
        """In the order of the tables."""
        return list(dict.fromkeys(method for method, _ in self.rows))

    def column(self, key: str) -> dict[str, Decision]:
        """The rows of a metric by method."""
        return {method: row for (method, of), row in self.rows.items() if of == key}

    def marked(self, mark: str) -> list[str]:
        """The methods with a mark."""
        return [method for method, marks in self.marks.items() if mark in marks]

    def frame(self, keys: Sequence[str] = ()) -> pd.DataFrame:
        """These metrics, or those shown, as a table with COLUMNS, the methods in order."""
        rows = [self.rows[method, key] for method in self.methods for key in keys or self.shown]
        return pd.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS))


def decide(
    scores: Scores, methods: Sequence[str], shown: Sequence[str] = (), more: Sequence[str] = ()
) -> Decisions:
    """The decisions on the points of `scores`, for these of its methods.

    Args:
        shown: the metrics of the report, all if there are none; one that no method has (U_w2v
            without word vectors) is left out. more: further metrics that every method needs.
    """
    rows = scores.own_rows()
    rows = rows[rows["calibrator"].isin(list(methods))]
    is_mean = rows["split"] == ALL_SPLITS
    whole = {(row["calibrator"], row["metric"]): row for row in rows[is_mean].to_dict("records")}
    of_splits = rows[~is_mean].groupby(["calibrator", "metric"])["value"].agg(list)
    measured = [pair for pair, row in whole.items() if not math.isnan(row["value"])]
    some = list(dict.fromkeys(key for _, key in measured))
    shown = [key for key in shown or some if key in some]
    needed = [key for key in (*shown, *more) if key in some]
    absent = [(m, key) for m in methods for key in needed if (m, key) not in measured]
    if absent or not needed:
        method, key = absent[0] if absent else (methods[0], "any metric")
        raise InputError(
            f"{scores.benchmark}: {method} has no value of {key}",
            fixes="evaluate it again with utility-calibration evaluate "
            f"benchmark={scores.benchmark} calibrator={method}",
        )
    keys = [key for key in some if all((method, key) in measured for method in methods)]
    share, logits = scores.test_share, scores.facts["logits"]
    records = scores.facts["calibrators"]
    rarest = _rarest(logits, share, [whole[m, "u_cwe"] for m in methods if "u_cwe" in keys])
    is_weighted = bool(logits.get("weights"))
    decided = {}
    for key in keys:
        values = {method: of_splits[method, key] for method in methods}
        draws = {method: scores.draws(method).get(key, ()) for method in methods}
        floors = {m: whole[m, key]["p_value"] for m in methods} if metric(key).has_floor else None
        larger = metric(key).larger_is_better
        alone = {
            m: _decision(whole[m, key], scores.together(m).get(key), values[m], share, rarest)
            for m in methods
        }
        compared = inference.against_best(values, share, draws, larger, floors, is_weighted)
        for m in methods:
            decided[m, key] = Decision(**alone[m], **compared[m]._asdict())
    splits, points = len(values[methods[0]]), int(whole[methods[0], keys[0]]["n_test"])
    tested = any(row.not_worse is not None for row in decided.values())
    return Decisions(
        rows={(method, key): decided[method, key] for method in methods for key in keys},
        shown=shown,
        test=("corrected" if splits >= inference.FEWEST_SPLITS else "bootstrap") if tested else "",
        splits=splits,
        test_points=points,
        refused=refusal(points, rarest, logits),
        users={m: float(whole.get((m, ALL_CLASSES), {}).get("upper", math.nan)) for m in methods},
        marks={m: _marks(decided.get((m, "nll")), records.get(m, {})) for m in methods},
        rarest=None if scores.group else rarest,  # a group may have fewer
        clusters=int(logits.get("clusters", 0)),
    )


def _marks(nll: Decision | None, record: Mapping[str, Any]) -> tuple[str, ...]:
    """The marks of a method, from its likelihood and the record of its fits."""
    is_infinite = nll is not None and nll.zero_likelihood > 0
    is_harmed = any(record.get("worse_than_temperature", ()))
    return (INFINITE,) * is_infinite + (HARMED,) * is_harmed


def _decision(
    row: Mapping[Any, Any],
    together: float | None,
    values: Sequence[float],
    share: float,
    rarest: Rarest | None,
) -> dict[str, Any]:
    """What is decided of a method and metric by itself, from its `row` of all splits."""
    p_value = row["p_value"] if together is None else together
    corrected, bootstrap = inference.corrected_half_width(values, share), row["half_width"]
    is_resampled = not math.isnan(bootstrap)
    beyond = None if math.isnan(p_value) else bool(p_value <= inference.SIZE)
    is_blind = row["metric"] == "u_cwe" and rarest is not None and rarest.tested < rarest.needed
    as_written = {name: row[name] for name in COLUMNS if name in row}  # floor and certificate
    decided = {
        "method": row["calibrator"],
        "mean": row["value"],
        "two_se": inference.two_standard_errors(values),
        "splits": len(values),
        "p_together": p_value,
        "beyond_floor": beyond,
        "within_noise": None if beyond is None or (is_blind and not beyond) else not beyond,
        "half_width": bootstrap if is_resampled else corrected,
        "interval": "bootstrap" if is_resampled else "corrected",
        "half_width_corrected": corrected,
        "half_width_bootstrap": bootstrap,
    }
    return {**as_written, **decided}


def _rarest(
    logits: Mapping[str, Any], share: float, rows: Sequence[Mapping[Any, Any]]
) -> Rarest | None:
    """The rarest class, if it is known; `rows`: those of U_CWE, one of each method."""
    if logits.get("rarest_class") is None:
        return None
    floors = [(row["n_test"], row["floor_q95"]) for row in rows if math.isfinite(row["floor_q95"])]
    needed = max((inference.fewest_positives(*floor) for floor in floors), default=0)
    count, name = int(logits["rarest_class"]), str(logits.get("rarest_class_name", ""))
    return Rarest(count, int(logits["n"]), share, needed, name)


def refusal(points: int, rarest: Rarest | None, logits: Mapping[str, Any]) -> str:
    """Why nothing is recommended for a classifier or for so few test points; else empty."""
    if logits.get("below_chance"):
        return (
            "No method is recommended, because the classifier is worse than guessing: it is right "
            f"for {logits['accuracy']:.1f} % of the points. Check that the columns are in the "
            "order of the classes."
        )
    if points < FEWEST_POINTS:
        return (
            f"Too few test points to recommend a method: a split has {points}, and at least "
            f"{FEWEST_POINTS} are needed."
        )
    if rarest is not None and rarest.tested < FEWEST_OF_A_CLASS:
        needed = math.ceil(FEWEST_OF_A_CLASS / rarest.share)
        return (
            "Too few points of some class to recommend a method: the rarest class has "
            f"{rarest.points} in all, and at least {needed} are needed so that every test part "
            "has some."
        )
    return ""
