"""One eCDF curve per method out of the levels that results/scores keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from metrics.ecdf import levels
from pipeline.reporting.collect import Scores
from pipeline.reporting.names import FLOOR_METHOD
from pipeline.scoring.tidy import FAMILIES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Band:
    """The noise floor of the sorted errors: 5 % and 95 % quantile, each [M], and whose it is."""

    low: Array
    high: Array
    method: str


@dataclass(frozen=True)
class Curves:
    """One family of utilities on one benchmark: sorted errors [M] per method, and their floor."""

    family: str
    errors: Mapping[str, Array]
    floor: Band | None
    splits: int
    batch: int | None = None
    """Points of the disjoint batches that errors are means over; None: all points at once."""

    @property
    def count(self) -> int:
        """M, the number of sampled utilities."""
        return len(next(iter(self.errors.values())))


def all_curves(scores: Scores, methods: Sequence[str]) -> list[Curves]:
    """The curves of each family of sampled users; none where the evaluation sampled none."""
    table = scores.own_curves()
    by_family = {family: table[table["family"] == family] for family in FAMILIES}
    if any(set(methods) - set(rows["calibrator"]) for rows in by_family.values()):
        return []
    return [_curves(scores, rows, methods, family) for family, rows in by_family.items()]


def _curves(scores: Scores, table: pd.DataFrame, methods: Sequence[str], family: str) -> Curves:
    """The floor is that of temperature scaling, or of the first method that has one."""
    evaluation = scores.facts["evaluation"]
    at = levels(evaluation["utilities"])
    rows = {method: table[table["calibrator"] == method] for method in methods}

    def read_off(method: str, column: str) -> Array:
        return np.interp(at, rows[method]["level"], rows[method][column])

    floor = None
    for method in sorted(methods, key=lambda method: method != FLOOR_METHOD):
        if rows[method]["floor_low"].notna().all():
            floor = Band(read_off(method, "floor_low"), read_off(method, "floor_high"), method)
            break
    errors = {method: read_off(method, "error") for method in methods}
    return Curves(family, errors, floor, scores.splits, evaluation["utility_batch"])
