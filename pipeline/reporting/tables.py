"""The table of one benchmark: its cells as text, their digits, their marks, and its notes.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one column
per metric, mean ± half of a 95 % interval, in bold every method that no test finds worse than the
best, every number beyond its noise floor marked, and a last row with a noise floor. Numbers have
the scale of the sentences beside the table. The paper's own look: each column with its power of
ten, ± 2 standard errors, the best mean bold. All numbers come from the decisions.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from utility_calibration.metrics.registry import Metric, metric
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from ..scoring.decisions import HARMED, Decision, Decisions
from .names import FLOOR_METHOD, NOISE_FLOOR, method_name
from .wording import bare, bound, decimals, names, number

OWN_FLOOR = "own floor"  # the note of a marked cell that lies below the last row's floor
MARK = "†"  # behind every number beyond its noise floor
INTERVALS = {
    "bootstrap": "The interval is 1.96 standard errors wide on each side. These come from drawing "
    "the test points anew many times, the same ones in all splits (a bootstrap).",
    "corrected": "The interval allows for the points that splits share (Nadeau & Bengio 2003).",
}
TESTS = {
    "corrected": "The tests compare methods split by split (corrected variance, Holm over methods, "
    "5 %).",
    "bootstrap": "The tests compare methods point by point (bootstrap of the difference, Holm over "
    "methods, 5 %). How results vary with the points that calibrate is not known.",
}
LEAST = (
    " So a test can find a method worse and find another one, with a larger mean, not worse. In "
    "each column even the truly best method is found worse by chance in 5 % of cases."
)
BEYOND = f"{MARK}: larger than chance explains (in 5 % of cases chance alone gives this mark)."
TOGETHER = (
    f"{MARK}: larger than chance explains. All groups of a column, and all utilities of your own, "
    f"are tested together: in 5 % of cases chance gives some of them a {MARK}. The CSV file has "
    "the p-value of each alone (p_value)."
)
LAST_ROW = "Noise floor: chance alone makes the error of {} no larger than this in 95 % of cases."
FLOOR = (
    "The noise floor is the 95 % quantile of the errors that the method's own probabilities show "
    "on these points when labels are drawn from them. Each method has a floor of its own."
)
WITHOUT_FLOOR = (
    f"no noise floor, no {MARK} and no certificate (–), because labels cannot be drawn from rows "
    "that do not sum to one."
)
NO_EVIDENCE = "Chance explains all errors in {}: there no method was found to be miscalibrated."
CERTIFICATE = (
    "Whichever class, length of a shortlist or way to rank you choose, an error is at most as "
    "large as these 95 % upper bounds{}: {}."
)
PAPER_RUNS = {"dirichlet": 80, "patching": 20}  # the paper's tuning runs (app. C.1)
STARTS = {
    "pooled": "its start, the pool of maps",
    "temperature": "temperature scaling",
    "softmax": "no calibration",
}
"""What a patching equals that made no patch, by its option `start`."""


@dataclass(frozen=True)
class TableSpec:
    """What a table shows: `metrics` are keys in order; `name` is the stem of its files.

    remarks: sentences below it. look: "paper" has two standard errors and the best mean in bold.
    """

    name: str
    title: str
    metrics: Sequence[str]
    remarks: tuple[str, ...] = ()
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

    `metric` has the power of ten of the printed numbers, `look` is that of TableSpec. `floor` is
    that of the last row, NaN without one.
    """

    metric: Metric
    rows: Mapping[str, Decision]
    look: str
    digits: int
    floor: float

    @classmethod
    def of(cls, rows: Mapping[str, Decision], look: str, floor_source: str) -> Self:
        """The column; all its numbers have the same number of digits."""
        shown = metric(next(iter(rows.values())).metric)
        shown = shown if look == "paper" else replace(shown, power=0)
        column = cls(shown, rows, look, 0, rows[floor_source].floor_q95)
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
        # Below the last row's floor a mark would look like a mistake.
        is_odd = row.beyond_floor and row.mean < self.floor
        return f"{OWN_FLOOR} {self.text(row.floor_q95)}" if is_odd else ""

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
    """One benchmark's table; `floor_source` is the method whose probabilities made the floors."""

    spec: TableSpec
    columns: Sequence[Column]
    decisions: Decisions
    floor_source: str

    @classmethod
    def of(cls, decisions: Decisions, spec: TableSpec) -> Self:
        """A metric that was not measured has no column; floors are those of temperature scaling."""
        with_floor = {m for (m, _), row in decisions.rows.items() if not np.isnan(row.floor_mean)}
        order = [method for method in (FLOOR_METHOD, *decisions.methods) if method in with_floor]
        source = next(iter(order), decisions.methods[0])
        measured = filter(None, map(decisions.column, spec.metrics))
        columns = [Column.of(rows, spec.look, source) for rows in measured]
        return cls(spec, columns, decisions, source)

    def lines(self, form: Form) -> tuple[list[str], list[list[str]], list[str]]:
        """The headings, a line per method, and the last line, which is empty without floors."""
        columns, floors = self.columns, [c.text(c.floor) for c in self.columns]
        heading = ["Method", *(form.heading(column.metric) for column in columns)]
        methods = self.decisions.methods
        rows = [[form.name(m), *(column.cell(m, form) for column in columns)] for m in methods]
        last = [NOISE_FLOOR, *map(form.number, floors)] if self.has_floor else []
        return heading, rows, last

    @property
    def has_floor(self) -> bool:
        """Whether some metric has a noise floor."""
        return any(not math.isnan(column.floor) for column in self.columns)

    def with_columns(self, keys: Collection[str]) -> Self:
        """The same table with these metrics alone."""
        return replace(self, columns=[c for c in self.columns if c.metric.key in keys])

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
        is_paper, decisions = self.spec.look == "paper", self.decisions
        methods, uppers = decisions.methods, decisions.users
        cells = [(column, row) for column in self.columns for row in column.rows.values()]
        over = f"Mean over {decisions.splits} splits" if decisions.splits > 1 else "One split"
        notes = [(f"{over}.", "")]
        if any(not math.isnan(column.spread(row)) for column, row in cells):
            spread = f"{over} ± {'2 standard errors' if is_paper else 'half of a 95 % interval'}."
            notes = [(spread, "" if is_paper else INTERVALS[cells[0][1].interval])]
        if is_paper:
            notes.append((f"{mark}: the best mean.", ""))
        elif decisions.test:
            tests = TESTS[decisions.test] + LEAST
            notes.append((f"{mark}: no test finds it worse than the best.", tests))
        if self.has_floor:
            last = LAST_ROW.format(method_name(self.floor_source))
            beyond = TOGETHER if any(row.is_one_of_many for _, row in cells) else BEYOND
            notes.append((f"{beyond} {last}", FLOOR))
            with_floor = {row.method for _, row in cells if row.beyond_floor is not None}
            without = [method for method in methods if method not in with_floor]
            if without:
                notes.append(("", f"{names(without)}: {WITHOUT_FLOOR}"))
            within = [
                column.metric.text
                for column in self.columns
                if all(column.rows[method].beyond_floor is False for method in with_floor)
            ]
            if within and with_floor:
                notes.append(("", NO_EVIDENCE.format(", ".join(within))))
            if any(math.isfinite(upper) for upper in uppers.values()):
                bounds = [f"{method_name(m)} {bound(uppers.get(m, math.nan))}" for m in methods]
                average = ", on average over the splits" if decisions.splits > 1 else ""
                notes.append(("", CERTIFICATE.format(average, ", ".join(bounds))))
        if any(column.metric.key == "nll" for column in self.columns):
            infinite = "∞: infinite NLL, because so many labels had probability 0."
            floored = f"The NLL takes probabilities below {LIKELIHOOD_FLOOR:g} as this number."
            is_infinite = any(row.zero_likelihood > 0 for _, row in cells)
            notes.append((infinite if is_infinite else "", floored))
        return notes


def remarks_of(facts: Mapping[str, Any], decisions: Decisions) -> tuple[str, ...]:
    """For the tables' notes: weights, splits without a patch, settings that are not the paper's."""
    methods, calibrators = decisions.methods, facts["calibrators"]
    remarks = []
    weights = facts["logits"].get("weights")
    if weights:
        remarks.append("Points have weights, from {:.3g} to {:.3g}.".format(*weights))
    for method in methods:
        counts = calibrators.get(method, {}).get("patches", [])
        if counts:
            patches = ", ".join(map(str, counts))
            remarks.append(f"{method_name(method)}: number of patches in each split: {patches}.")
        if 0 in counts:
            start = STARTS.get(calibrators[method]["config"].get("start", "softmax"), "its start")
            where = f"0 patches in {counts.count(0)} of {len(counts)} splits"
            remarks.append(f"{method_name(method)}: {where}, where it equals {start}.")
    for method in decisions.marked(HARMED):
        worse = calibrators[method]["worse_than_temperature"]
        remarks.append(
            f"{method_name(method)} ({HARMED}): in {sum(worse)} of {len(worse)} splits no setting "
            "that was tried is better than temperature scaling on held-out points."
        )
    tuned = [method for method in PAPER_RUNS if method in methods]
    runs = [calibrators[m]["config"].get("tuning_runs", PAPER_RUNS[m]) for m in tuned]
    if runs != [PAPER_RUNS[method] for method in tuned]:
        rows = zip(runs, map(method_name, tuned), (PAPER_RUNS[method] for method in tuned))
        counts = [f"{count} for {name} (the paper: {paper})" for count, name, paper in rows]
        remarks.append(
            f"Tuning runs: {', '.join(counts)}; the tuning “paper” has as many as the paper."
        )
    points = facts["evaluation"]["utility_batch"]
    if points is not None:
        batches = f"disjoint batches of {points} test points or a few more"
        remarks.append(f"Utility metrics: means over {batches}.")
    return tuple(remarks)
