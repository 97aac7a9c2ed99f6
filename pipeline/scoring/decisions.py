"""Records of the decisions on a benchmark: per method and metric what was measured and tested.

deciding.py makes them once, from the scores. Verdict, leaderboard, tables and pages decide nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

import pandas as pd

FEWEST_POINTS = 200  # test points of a split below which no method is recommended
FEWEST_OF_A_CLASS = 3  # expected test points of the rarest class; with fewer, many splits lack it
INFINITE, HARMED = "∞", "▽"
"""Marks of a method: some label had probability 0; fitted worse than temperature scaling."""


@dataclass(frozen=True)
class Rarest:
    """The rarest class, and how many of its points a verdict on it needs."""

    points: int
    """Its number of points."""
    n: int
    """The number of all points."""
    share: float
    """The share of all points that a test part has."""
    needed: int = 0
    """So many in a test part let U_CWE tell whether its forecasts are off by half
    (scoring/inference.py), with every method."""
    name: str = ""
    """Empty where it is not known."""

    @property
    def tested(self) -> float:
        """How many of its points a test part has on average."""
        return self.points * self.share


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One method and metric, unscaled; the fields are the columns of the tables' CSV files."""

    method: str
    metric: str
    mean: float
    """Over the splits."""
    two_se: float
    """The paper's spread: two standard errors over the splits."""
    splits: int
    """Their number."""
    floor_mean: float
    """The noise floor of the mean, from the method's own probabilities."""
    floor_q95: float
    p_value: float
    """Of the mean against its noise floor."""
    p_together: float
    """Of all groups of a table, or all own utilities, together (families.py); p_value where there
    is one alone."""
    beyond_floor: bool | None
    """Whether p_together is at most 5 %; None without a floor."""
    within_noise: bool | None
    """The opposite; None where it is not known, also of U_CWE where the rarest class has too few
    points."""
    half_width: float
    """Of the 95 % interval."""
    interval: str
    """`bootstrap` where the points were resampled, else `corrected` (inference.py)."""
    half_width_corrected: float
    half_width_bootstrap: float
    difference: float
    """From the method of the best mean."""
    difference_half_width: float
    difference_p: float
    not_worse: bool | None
    """Whether after Holm's steps no test finds the method worse; None without a test."""
    zero_likelihood: float
    """Points per split whose label had probability 0."""
    estimate: float
    """The certificate: an estimate of the error, and bounds on it."""
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
    """The decisions on all points of a benchmark, or on one group of them."""

    rows: Mapping[tuple[str, str], Decision]
    """By method and metric all that were measured."""
    shown: Sequence[str]
    """The metrics of the report, from which verdict and leaderboard count."""
    test: str
    """What compares the methods, over splits (`corrected`) or over points (`bootstrap`); empty
    where nothing does."""
    splits: int
    """Their number."""
    test_points: int
    """Of one split."""
    refused: str = ""
    """Why no method is recommended, whatever the tests say."""
    users: Mapping[str, float] = field(default_factory=dict)
    """By method the 95 % upper bound on the error of any user, mean over splits."""
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By method the signs of what speaks against it."""
    rarest: Rarest | None = None
    clusters: int = 0
    """The number of clusters of points; 0 without any."""

    @property
    def methods(self) -> list[str]:
        """In the order of the tables."""
        return list(dict.fromkeys(method for method, _ in self.rows))

    def column(self, key: str) -> dict[str, Decision]:
        """The rows of a metric by method."""
        return {method: row for (method, metric), row in self.rows.items() if metric == key}

    def marked(self, mark: str) -> list[str]:
        """The methods with a mark."""
        return [method for method, marks in self.marks.items() if mark in marks]

    def frame(self, keys: Sequence[str] = ()) -> pd.DataFrame:
        """These metrics, or those shown, as a table with COLUMNS, the methods in order."""
        rows = []
        for method in self.methods:
            rows += [asdict(self.rows[method, key]) for key in keys or self.shown]
        return pd.DataFrame(rows, columns=list(COLUMNS))
