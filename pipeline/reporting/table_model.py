"""A formatted table before it takes the syntax of a file format."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from metrics.registry import Metric
from metrics.scores import LIKELIHOOD_FLOOR
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import bound, names

Look = Literal["default", "paper"]
MARK = "†"
"""Behind every number beyond its noise floor."""
INTERVALS = {
    "bootstrap": "It is 1.96 standard errors of a bootstrap over the points, which reweights all "
    "splits at once.",
    "corrected": "It allows for the points that splits share (Nadeau & Bengio 2003).",
}
TESTS = (
    "The tests are paired over splits (corrected variance, Holm over methods, 5 %). So a test can "
    "find a method worse and one with a larger mean not worse."
)
FLOOR = (
    "The floor is the 95 % quantile of the errors that the method's own probabilities show on "
    "these points when labels are drawn from them. Each method has a floor of its own."
)


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
    look: Look = "default"

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

    def with_columns(self, keys: Collection[str]) -> ResultTable:
        """The same table with these metrics alone."""
        kept = [column for column in self.columns if column.metric.key in keys]
        return replace(self, columns=tuple(kept))

    def brief(self, mark: str) -> list[str]:
        """The notes in short, for a terminal and a caption; `mark` names how best cells look."""
        return [short for short, _ in self._explained(mark) if short]

    @property
    def notes(self) -> list[str]:
        """What a reader must know, one sentence or more each."""
        notes = [" ".join(filter(None, pair)) for pair in self._explained("Bold")]
        return [*notes, *self.spec.remarks]

    def _explained(self, mark: str) -> list[tuple[str, str]]:
        """What marks and numbers mean: each in a short sentence, and what the files add to it."""
        is_paper, many = self.spec.look == "paper", self.splits > 1
        cells = [cell for column in self.columns for cell in column.cells.values()]
        over = f"Mean over {self.splits} splits" if many else "One split"
        spread = f"{over} ± {'2 standard errors' if is_paper else 'half of a 95 % interval'}."
        notes = [(f"{over}.", "")]
        if any(cell.spread for cell in cells):
            notes = [(spread, "" if is_paper else INTERVALS[self.interval])]
        if is_paper or not many:
            notes.append((f"{mark}: the best {'mean' if many else 'value'}.", ""))
        else:
            notes.append((f"{mark}: no test finds it worse than the best.", TESTS))
        if self.has_floor:
            short = (
                f"{MARK}: beyond the method's noise floor, which chance exceeds in 5 % of cases. "
                f"Last row: the floor of {self.floor_source}."
            )
            notes += [(short, FLOOR), *(("", note) for note in self._notes_on_floors())]
        if any(column.metric.key == "nll" for column in self.columns):
            infinite = "∞: infinite NLL, because so many labels had probability 0."
            floored = f"The NLL takes probabilities below {LIKELIHOOD_FLOOR:g} as this number."
            notes.append((infinite if any(cell.note for cell in cells) else "", floored))
        return notes

    def _notes_on_floors(self) -> list[str]:
        """Methods without a floor, metrics without a method beyond it, and the certificates."""
        notes = []
        without = [m for m, cells in self.rows if all(cell.beyond is None for cell in cells)]
        if without:
            notes.append(
                f"{names(without)}: no noise floor, no {MARK} and no certificate (–), because "
                "labels cannot be drawn from rows that do not sum to one."
            )
        with_floor = [method for method in self.spec.methods if method not in without]
        within = [
            column.metric.text
            for column in self.columns
            if all(column.cells[method].beyond is False for method in with_floor)
        ]
        if with_floor and within:
            notes.append(
                f"No method is beyond its noise floor in {', '.join(within)}: these columns are no "
                "evidence against the calibration of any method."
            )
        if self.certificates:
            bounds = ", ".join(
                f"{method_name(method)} {bound(self.certificates.get(method, math.nan))}"
                for method in self.spec.methods
            )
            over = ", on average over the splits" if self.splits > 1 else ""
            notes.append(
                "The 95 % upper bound on the error of any user of these classes (U_CWE, U_topK, "
                f"U_dcg and the like){over} and in units of utility: {bounds}."
            )
        return notes
