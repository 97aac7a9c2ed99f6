"""A formatted table before it takes the syntax of a file format."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from metrics.registry import Metric
from metrics.scores import LIKELIHOOD_FLOOR
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import bound

MARK = "†"
"""Behind every number beyond its noise floor."""


@dataclass(frozen=True)
class TableSpec:
    """What a table shows: `metrics` and `methods` are keys in order.

    stem: the name of its files, if that is not the benchmark's. remarks: sentences below the table.
    look: "default", or "paper": two standard errors, the best mean in bold.
    """

    benchmark: str
    title: str
    metrics: Sequence[str]
    methods: Sequence[str]
    stem: str = ""
    remarks: tuple[str, ...] = ()
    look: Literal["default", "paper"] = "default"

    @property
    def name(self) -> str:
        """The stem of the table's files and of its LaTeX label."""
        return self.stem or self.benchmark


@dataclass(frozen=True)
class Cell:
    """Rounded text of a mean and of its spread ("" where there is none), and how it is marked.

    best: not significantly worse than the best of its column (in the paper's look: the best mean).
    beyond: beyond the method's own noise floor; None where there is none. note: what a reader must
    know of this cell. row: the unrounded numbers, those of `collect.summarise`.
    """

    mean: str
    spread: str
    best: bool
    beyond: bool | None = None
    note: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """The cells of one metric by method, and the noise floor of `ResultTable.floor_source`.

    floor: its 95 % quantile as text; "" where there is none.
    """

    metric: Metric
    cells: Mapping[str, Cell]
    floor: str = ""


@dataclass(frozen=True)
class ResultTable:
    """One benchmark's table; `floor_source` names the method whose probabilities made the floors.

    interval: what the numbers after ± are in the default look. test_points: of one split.
    certificates: by method the 95 % upper bound on the true UC over all utility classes, mean over
    splits.
    """

    spec: TableSpec
    columns: tuple[Column, ...]
    floor_source: str
    splits: int
    interval: str = "corrected"
    test_points: int = 0
    certificates: Mapping[str, float] = field(default_factory=dict)

    @property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """Per method its key and its cells, in the order of the columns."""
        return [(m, [column.cells[m] for column in self.columns]) for m in self.spec.methods]

    @property
    def has_floor(self) -> bool:
        """Whether some metric has a noise floor."""
        return any(column.floor for column in self.columns)

    @property
    def has_notes_in_cells(self) -> bool:
        """Whether some cell has a note."""
        return any(cell.note for column in self.columns for cell in column.cells.values())

    def with_columns(self, keys: Collection[str]) -> ResultTable:
        """The same table with these metrics alone."""
        kept = [column for column in self.columns if column.metric.key in keys]
        return replace(self, columns=tuple(kept))

    def brief(self, mark: str) -> tuple[str, ...]:
        """The notes in short, for a terminal and a caption; `mark` names how best cells look."""
        over = f"Mean over {self.splits} splits" if self.splits > 1 else "One split"
        spread = "2 standard errors" if self._is_paper else "half of a 95 % interval"
        has_spread = any(cell.spread for column in self.columns for cell in column.cells.values())
        best = "the best mean" if self._is_paper else "no test finds it worse than the best"
        sentences = [f"{over} ± {spread}." if has_spread else f"{over}."]
        sentences.append(f"{mark}: {best if self.splits > 1 else 'the best value'}.")
        if self.has_floor:
            sentences.append(
                f"{MARK}: beyond the method's noise floor, which chance exceeds in 5 % of cases "
                f"(last row: that of {self.floor_source})."
            )
        if self.has_notes_in_cells:
            sentences.append("∞: infinite NLL, as so many labels had probability 0.")
        return tuple(sentences)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, one sentence or two each."""
        notes = [f"{self._spread_note()} {self._best_note()}"]
        if self.has_floor:
            notes += [self._floor_note(), *self._notes_on_floors()]
        notes += [self._certificate_note(), self._likelihood_note(), *self.spec.remarks]
        return tuple(note for note in notes if note)

    @property
    def _is_paper(self) -> bool:
        return self.spec.look == "paper"

    def _spread_note(self) -> str:
        """What the numbers after ± are."""
        if self.splits < 2:
            single = "One train/test split"
            if self._is_paper or self.interval != "bootstrap":
                return f"{single}, so no spread."
            return f"{single}; ± 1.96 standard errors of the bootstrap over points."
        over = f"over {self.splits} train/test splits"
        if self._is_paper:
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

    def _best_note(self) -> str:
        """What the cells in bold are."""
        if self.splits < 2:
            return "Bold: the best value."
        if self._is_paper:
            return "Bold: the best mean."
        return (
            "Bold: not significantly worse than the best (paired over splits, corrected "
            "variance, Holm over methods, 5 %). The tests are paired, so a smaller mean may lack "
            "it where a larger one has it."
        )

    def _likelihood_note(self) -> str:
        """Why a negative log-likelihood is finite."""
        if all(column.metric.key != "nll" for column in self.columns):
            return ""
        floored = f"NLL: probabilities below {LIKELIHOOD_FLOOR:g} count as that"
        if not self.has_notes_in_cells:
            return f"{floored}."
        return f"{floored}; ∞: without this it is infinite, as so many labels had probability 0."

    def _floor_note(self) -> str:
        """What the noise-floor row and the marks say."""
        shared = ", one per point for all splits" if self.splits > 1 else ""
        return (
            f"{MARK}: beyond the noise floor, the 95 % quantile of what the method's own "
            f"probabilities show on these points when labels are drawn from them{shared}. "
            f"Last row: this floor for {self.floor_source}; each method's own may be smaller or "
            "larger."
        )

    def _notes_on_floors(self) -> list[str]:
        """Methods without a floor, and metrics without a method beyond it."""
        notes = []
        without = [m for m, cells in self.rows if all(cell.beyond is None for cell in cells)]
        if without:
            notes.append(
                f"{', '.join(map(method_name, without))}: no noise floor, no {MARK} and no "
                "certificate (–), because labels cannot be drawn from rows that do not sum to one."
            )
        with_floor = [method for method in self.spec.methods if method not in without]
        within = [
            column.metric.text
            for column in self.columns
            if all(column.cells[method].beyond is False for method in with_floor)
        ]
        if with_floor and within:
            notes.append(
                f"No method is beyond its noise floor in {', '.join(within)}: nothing there speaks "
                "against the calibration of any of them."
            )
        return notes

    def _certificate_note(self) -> str:
        """The certificates of all methods in one sentence."""
        if not self.certificates:
            return ""
        bounds = ", ".join(
            f"{method_name(method)} {bound(self.certificates.get(method, math.nan))}"
            for method in self.spec.methods
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
