"""The table of one benchmark: its cells as text, their digits, their marks, and its notes.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one column
per metric, mean ± half of a 95 % interval, in bold every method that no test finds worse than the
best, and a mark at every number that is larger than chance explains. A second table says how large
each error is by chance alone. Numbers have the scale of the sentences beside the table. The paper's
own look: each column with its power of ten, ± 2 standard errors, the best mean bold. All numbers
come from the decisions.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

from utility_calibration.metrics.registry import Metric, metric

from ..scoring.decisions import Decision, Decisions
from .names import MARK, method_name
from .wording import TextTable, bare, decimals, number

FLOORS_TITLE = "How large are errors by chance alone?"
FLOORS_NOTE = (
    "If the method's own probabilities were right, its error would be below this number 19 times "
    "in 20."
)


@dataclass(frozen=True)
class TableSpec:
    """What a table shows.

    Attributes:
        name: the stem of its files.
        metrics: their keys in order.
        remarks: sentences below it.
        look: "paper" has two standard errors and the best mean in bold.
        counts: further sentences, which its own files alone have.
    """

    name: str
    title: str
    metrics: Sequence[str]
    remarks: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    look: str = "default"


class Form(NamedTuple):
    """How a kind of file writes the parts of a table; the last four are of a cell.

    `number` gets each whole cell, `best` and `note` are patterns of text in it.
    """

    heading: Callable[[Metric], str]
    name: Callable[[str], str] = method_name
    number: Callable[[str], str] = str
    between: str = " ± "
    best: str = "{}"
    mark: str = MARK
    note: str = " ({})"


@dataclass(frozen=True)
class Column:
    """One metric's decisions by method, and how many digits their numbers have.

    `metric` has the power of ten of the printed numbers, `look` is that of TableSpec.
    """

    metric: Metric
    rows: Mapping[str, Decision]
    look: str
    digits: int

    @classmethod
    def of(cls, rows: Mapping[str, Decision], look: str) -> Self:
        """The column; all its numbers have the same number of digits."""
        shown = metric(next(iter(rows.values())).metric)
        shown = shown if look == "paper" else replace(shown, power=0)
        column = cls(shown, rows, look, 0)
        scale, most = 10.0**shown.power, 3 if look == "paper" else 6
        means = [row.mean * scale for row in rows.values()]
        spreads = [column.spread(row) * scale for row in rows.values()]
        return replace(column, digits=decimals(means, spreads, most))

    def spread(self, row: Decision) -> float:
        """The number printed after ±; NaN where it is not known.

        In the paper's look it is two standard errors, else half of the 95 % interval.
        """
        return row.two_se if self.look == "paper" else row.half_width

    def text(self, value: float) -> str:
        """A value of the metric as the column prints it; `–` where there is none."""
        form = number if self.look == "paper" else bare
        return form(value * 10.0**self.metric.power, self.digits)

    @cached_property
    def best(self) -> set[str]:
        """The methods in bold: no test finds them worse; in the paper's look the best mean."""
        if self.look != "paper":
            return {method for method, row in self.rows.items() if row.not_worse}
        printed = {
            m: float(self.text(row.mean).replace("∞", "inf")) for m, row in self.rows.items()
        }
        best = max if self.metric.larger_is_better else min
        top = best(filter(math.isfinite, printed.values()), default=None)
        return {method for method, value in printed.items() if value == top}

    @property
    def all_beyond(self) -> bool:
        """Whether every number is larger than chance explains. Such a column is not shaded."""
        return all(row.beyond_floor for row in self.rows.values())

    def note(self, row: Decision) -> str:
        """What a reader must know of one cell, or ""."""
        if row.zero_likelihood > 0:  # only the NLL has it: it is finite by its floor alone
            return f"∞, {row.zero_likelihood:.3g}"
        return ""

    def has_floor(self, row: Decision) -> bool:
        """Whether it is known how large the error of a cell is by chance alone."""
        return not math.isnan(row.floor_q95)

    def cell(self, method: str, form: Form) -> str:
        """Mean and spread, in the pattern of the best if it is; then † and a note, if any."""
        row = self.rows[method]
        text, spread, note = self.text(row.mean), self.spread(row), self.note(row)
        text += "" if math.isnan(spread) else form.between + self.text(spread)
        text = form.best.format(text) if method in self.best else text
        text += form.mark if row.beyond_floor else ""
        return form.number(text + (form.note.format(note) if note else ""))


@dataclass(frozen=True)
class ResultTable:
    """One benchmark's table."""

    spec: TableSpec
    columns: Sequence[Column]
    decisions: Decisions

    @classmethod
    def of(cls, decisions: Decisions, spec: TableSpec) -> Self:
        """A metric that was not measured has no column."""
        measured = filter(None, map(decisions.column, spec.metrics))
        return cls(spec, [Column.of(rows, spec.look) for rows in measured], decisions)

    def lines(self, form: Form) -> tuple[list[str], list[list[str]]]:
        """The headings, and a line per method."""
        columns = self.columns
        heading = ["Method", *(form.heading(column.metric) for column in columns)]
        methods = self.decisions.methods
        rows = [[form.name(m), *(column.cell(m, form) for column in columns)] for m in methods]
        return heading, rows

    @property
    def with_floor(self) -> list[Column]:
        """The columns for which some floor is known."""
        return [c for c in self.columns if any(map(c.has_floor, c.rows.values()))]

    @property
    def has_floor(self) -> bool:
        """Whether some metric has a noise floor."""
        return bool(self.with_floor)

    def floors(self) -> TextTable:
        """How large each method's errors are by chance alone, which decides the marks."""
        columns = self.with_floor
        heading = ["Method", *(f"{c.metric.text} {c.metric.scale}".strip() for c in columns)]
        rows = []
        for method in self.decisions.methods:
            floors = [column.text(column.rows[method].floor_q95) for column in columns]
            rows.append([method_name(method), *floors])
        return TextTable(FLOORS_TITLE, heading, rows, FLOORS_NOTE)

    def with_columns(self, keys: Collection[str]) -> Self:
        """The same table with these metrics alone."""
        return replace(self, columns=[c for c in self.columns if c.metric.key in keys])
