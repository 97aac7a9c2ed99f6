"""A formatted table before it takes the syntax of a file format."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from metrics.registry import Metric
from metrics.scores import LIKELIHOOD_FLOOR
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import bound

MARK = "†"
"""Behind every number beyond its noise floor."""
SMALL_SAMPLE = 2000
"""Test points below which a table says what error could have been seen at all."""


@dataclass(frozen=True)
class Cell:
    """Rounded text of a mean and of its spread ("" where there is none), and how it is marked.

    best: not significantly worse than the best of its column (in the paper's look: the best mean).
    beyond: beyond the method's own noise floor; None where there is none. note: what a reader must
    know of this cell. row: the unrounded numbers, those of `collect.summarise`. In the row of the
    noise floor `mean` holds its 95 % quantile.
    """

    mean: str
    spread: str
    best: bool
    beyond: bool | None = None
    note: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One method's cells, in the order of the table's metrics."""

    name: str
    cells: tuple[Cell, ...]
    key: str = ""


@dataclass(frozen=True)
class ResultTable:
    """One benchmark's table; `floor_source` is the method whose probabilities made `floor`.

    look: "default", or "paper": two standard errors, the smallest mean in bold. interval: what the
    numbers after ± are in the default look. certificates: by method the 95 % upper bound on the
    true UC over all utility classes, mean over splits.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    floor: Row | None
    floor_source: str
    splits: int
    remarks: tuple[str, ...] = ()
    certificates: Mapping[str, float] = field(default_factory=dict)
    look: Literal["default", "paper"] = "default"
    interval: str = "corrected"
    test_points: int = 0

    def with_columns(self, keys: Collection[str]) -> ResultTable:
        """The same table with these metrics alone."""
        places = [k for k, metric in enumerate(self.metrics) if metric.key in keys]

        def cut(row: Row) -> Row:
            return replace(row, cells=tuple(row.cells[place] for place in places))

        return replace(
            self,
            metrics=tuple(self.metrics[place] for place in places),
            rows=tuple(map(cut, self.rows)),
            floor=None if self.floor is None else cut(self.floor),
        )

    def brief(self, mark: str) -> tuple[str, ...]:
        """The notes in short, for a terminal and a caption."""
        over = f"Mean over {self.splits} splits" if self.splits > 1 else "One split"
        spread = "2 standard errors" if self.look == "paper" else "half of a 95 % interval"
        has_spread = any(cell.spread for row in self.rows for cell in row.cells)
        best = "the best mean" if self.look == "paper" else "no test finds it worse than the best"
        found = [f"{over} ± {spread}." if has_spread else f"{over}."]
        found.append(f"{mark}: {best if self.splits > 1 else 'the best value'}.")
        if self.floor is not None:
            found.append(
                f"{MARK}: beyond the method's noise floor, which chance exceeds in 5 % of cases "
                f"(last row: that of {self.floor_source})."
            )
        if any(cell.note for row in self.rows for cell in row.cells):
            found.append("∞: infinite NLL, as so many labels had probability 0.")
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, one sentence or two each."""
        return self.notes_with("Bold")

    def notes_with(self, mark: str) -> tuple[str, ...]:
        """The notes; `mark` names how the best cells are marked."""
        found = (
            f"{self.spread_note} {self.best_note(mark)}",
            self.floor_note,
            self.unnormalised_note,
            self.within_note,
            self.power_note,
            self.certificate_note,
            self.likelihood_note,
            *self.remarks,
        )
        return tuple(note for note in found if note)

    @property
    def spread_note(self) -> str:
        """What the numbers after ± are."""
        if self.splits < 2:
            single = "One train/test split"
            if self.look == "paper" or self.interval != "bootstrap":
                return f"{single}, so no spread."
            return f"{single}; ± 1.96 standard errors of the bootstrap over points."
        over = f"over {self.splits} train/test splits"
        if self.look == "paper":
            return f"Mean ± 2 standard errors {over}."
        if self.interval == "bootstrap":
            return (
                f"Mean {over} ± 1.96 standard errors of the bootstrap over points (all splits "
                "reweighted at once): a 95 % interval."
            )
        return (
            f"Mean {over} ± half of a 95 % interval that allows for the points which splits share "
            "(Nadeau & Bengio 2003)."
        )

    def best_note(self, mark: str) -> str:
        """What the marked cells are."""
        if self.splits < 2:
            return f"{mark}: the best value."
        if self.look == "paper":
            return f"{mark}: the best mean."
        return (
            f"{mark}: not significantly worse than the best (paired over splits, corrected "
            "variance, Holm over methods, 5 %). The tests are paired, so a smaller mean may lack "
            "it where a larger one has it."
        )

    @property
    def likelihood_note(self) -> str:
        """Why a negative log-likelihood is finite."""
        if all(metric.key != "nll" for metric in self.metrics):
            return ""
        floored = f"NLL: probabilities below {LIKELIHOOD_FLOOR:g} count as that"
        if not any(cell.note for row in self.rows for cell in row.cells):
            return f"{floored}."
        return f"{floored}; ∞: without this it is infinite, as so many labels had probability 0."

    @property
    def floor_note(self) -> str:
        """What the noise-floor row and the marks say."""
        if self.floor is None:
            return ""
        shared = ", one per point for all splits" if self.splits > 1 else ""
        return (
            f"{MARK}: beyond the noise floor, the 95 % quantile of what the method's own "
            f"probabilities show on these points when labels are drawn from them{shared}. "
            f"Last row: this floor for {self.floor_source}; each method's own may be smaller or "
            "larger."
        )

    @property
    def unnormalised_note(self) -> str:
        """Why some methods have neither floor nor certificate."""
        if self.floor is None or not self.without_floor:
            return ""
        names = ", ".join(row.name for row in self.rows if row.key in self.without_floor)
        return (
            f"{names}: no noise floor, no {MARK} and no certificate (–), because labels cannot be "
            "drawn from rows that do not sum to one."
        )

    @property
    def without_floor(self) -> set[str]:
        """The methods without any noise floor, where the table has one."""
        return {
            row.key
            for row in self.rows
            if self.floor and all(cell.beyond is None for cell in row.cells)
        }

    @property
    def within_note(self) -> str:
        """Where nothing speaks against any method."""
        without = self.without_floor
        if self.floor is None or len(without) == len(self.rows):
            return ""
        columns = [
            metric.text
            for k, metric in enumerate(self.metrics)
            if all(row.cells[k].beyond is False for row in self.rows if row.key not in without)
        ]
        if not columns:
            return ""
        return (
            f"No method is beyond its noise floor in {', '.join(columns)}: nothing there speaks "
            "against the calibration of any of them."
        )

    @property
    def power_note(self) -> str:
        """What error a small sample could have shown."""
        if self.floor is None or not 0 < self.test_points < SMALL_SAMPLE:
            return ""
        seen = [
            f"{metric.text} {cell.mean}"
            for metric, cell in zip(self.metrics, self.floor.cells, strict=True)
            if cell.mean
        ]
        return (
            f"Small sample: on {self.test_points} test points a miscalibration is as likely missed "
            f"as seen unless it lifts an error above the noise floor ({', '.join(seen)})."
        )

    @property
    def certificate_note(self) -> str:
        """The certificates of all methods in one sentence."""
        if not self.certificates:
            return ""
        uppers = {row.key: self.certificates.get(row.key, math.nan) for row in self.rows}
        bounds = ", ".join(
            f"{method_name(method)} {bound(upper)}" for method, upper in uppers.items()
        )
        users = "user of these classes (U_CWE, U_topK, U_dcg and the like)"
        if self.splits > 1:
            return (
                f"The 95 % upper bound on the error of any {users}, on average over the splits and "
                f"in units of utility: {bounds}."
            )
        return (
            f"With 95 % confidence no {users} is off by more than, in units of utility: {bounds}."
        )
