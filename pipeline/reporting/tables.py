"""The table of one benchmark: its cells as text, their digits, their marks, and its notes.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one column
per metric, mean ± half of a 95 % interval, in bold every method that no test finds worse than the
best, every number beyond its noise floor marked, and a last row with a noise floor. Numbers have
the scale of the sentences beside the table. The paper's own look: each column with its power of
ten, ± 2 standard errors, the best mean bold. All numbers come from the decisions.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from utility_calibration.metrics.registry import Metric, metric
from utility_calibration.metrics.scores import LIKELIHOOD_FLOOR

from ..scoring.decisions import HARMED, Decision, Decisions
from .names import FLOOR_METHOD, method_name
from .wording import bare, bound, decimals, names, number

OWN_FLOOR = "own floor"  # the note of a marked cell that lies below the last row's floor
MARK = "†"  # behind every number beyond its noise floor
INTERVALS = {
    "bootstrap": "It is 1.96 standard errors of a bootstrap over the points, which reweights all "
    "splits at once.",
    "corrected": "It allows for the points that splits share (Nadeau & Bengio 2003).",
}
TESTS = {
    "corrected": "The tests are paired over splits (corrected variance, Holm over methods, 5 %).",
    "bootstrap": "The tests are paired over points (bootstrap of the difference, Holm over "
    "methods, 5 %). The spread over other calibration sets is not known.",
}
LEAST = " So a test can find a method worse and one with a larger mean not worse."
BEYOND = f"{MARK}: beyond the method's noise floor, which chance exceeds in 5 % of cases."
FLOOR = (
    "The floor is the 95 % quantile of the errors that the method's own probabilities show on "
    "these points when labels are drawn from them. Each method has a floor of its own."
)
WITHOUT_FLOOR = (
    f"no noise floor, no {MARK} and no certificate (–), because labels cannot be drawn from rows "
    "that do not sum to one."
)
NO_EVIDENCE = (
    "No method is beyond its noise floor in {}: these columns are no evidence against the "
    "calibration of any method."
)
CERTIFICATE = (
    "The 95 % upper bound on the error of any user of these classes (U_CWE, U_topK, U_dcg and the "
    "like){} and in units of utility: {}."
)
PAPER_RUNS = {"dirichlet": 80, "patching": 20}  # the paper's tuning runs (app. C.1)
STARTS = {"temperature": "temperature scaling", "softmax": "no calibration"}
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


@dataclass(frozen=True)
class Cell:
    """Rounded text of a mean and of its spread ("" where there is none), and how it is marked.

    best: in bold; beyond: its own noise floor. note: what a reader must know of this cell.
    """

    mean: str
    spread: str
    best: bool
    beyond: bool
    note: str
    row: Decision


@dataclass(frozen=True)
class Column:
    """The cells of one metric by method, and the text of the last row's floor, "" without one.

    `metric` has the power of ten that the cells are printed with.
    """

    metric: Metric
    cells: Mapping[str, Cell]
    floor: str


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
        return cls(spec, [_column(rows, spec.look, source) for rows in measured], decisions, source)

    @property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """Per method its key and its cells, in the order of the columns."""
        return [(m, [column.cells[m] for column in self.columns]) for m in self.decisions.methods]

    @property
    def has_floor(self) -> bool:
        """Whether some metric has a noise floor."""
        return any(column.floor for column in self.columns)

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
        cells = [cell for column in self.columns for cell in column.cells.values()]
        over = f"Mean over {decisions.splits} splits" if decisions.splits > 1 else "One split"
        notes = [(f"{over}.", "")]
        if any(cell.spread for cell in cells):
            spread = f"{over} ± {'2 standard errors' if is_paper else 'half of a 95 % interval'}."
            notes = [(spread, "" if is_paper else INTERVALS[cells[0].row.interval])]
        if is_paper:
            notes.append((f"{mark}: the best mean.", ""))
        elif decisions.test:
            tests = TESTS[decisions.test] + LEAST
            notes.append((f"{mark}: no test finds it worse than the best.", tests))
        if self.has_floor:
            last = f"Last row: the floor of {method_name(self.floor_source)}."
            notes.append((f"{BEYOND} {last}", FLOOR))
            without = [m for m, row in self.rows if all(c.row.beyond_floor is None for c in row)]
            if without:
                notes.append(("", f"{names(without)}: {WITHOUT_FLOOR}"))
            within = [
                column.metric.text
                for column in self.columns
                if all(
                    c.row.beyond_floor is False for m, c in column.cells.items() if m not in without
                )
            ]
            if within and len(without) < len(methods):
                notes.append(("", NO_EVIDENCE.format(", ".join(within))))
            if any(math.isfinite(upper) for upper in uppers.values()):
                bounds = [f"{method_name(m)} {bound(uppers.get(m, math.nan))}" for m in methods]
                average = ", on average over the splits" if decisions.splits > 1 else ""
                notes.append(("", CERTIFICATE.format(average, ", ".join(bounds))))
        if any(column.metric.key == "nll" for column in self.columns):
            infinite = "∞: infinite NLL, because so many labels had probability 0."
            floored = f"The NLL takes probabilities below {LIKELIHOOD_FLOOR:g} as this number."
            is_infinite = any(cell.row.zero_likelihood > 0 for cell in cells)
            notes.append((infinite if is_infinite else "", floored))
        return notes


def _column(rows: Mapping[str, Decision], look: str, floor_source: str) -> Column:
    """One metric's cells and its noise floor, all with the same number of digits."""
    column, is_paper = metric(next(iter(rows.values())).metric), look == "paper"
    column = column if is_paper else replace(column, power=0)
    scale = 10.0**column.power
    spreads = {m: scale * (row.two_se if is_paper else row.half_width) for m, row in rows.items()}
    values = [row.mean * scale for row in rows.values()]
    digits = decimals(values, list(spreads.values()), most=3 if is_paper else 6)
    form = partial(number if is_paper else bare, decimals=digits)
    means = {method: form(row.mean * scale) for method, row in rows.items()}
    best = {method for method, row in rows.items() if row.not_worse}
    if is_paper:  # the best printed mean
        printed = {method: float(text.replace("∞", "inf")) for method, text in means.items()}
        top = (max if column.larger_is_better else min)(
            filter(math.isfinite, printed.values()), default=None
        )
        best = {method for method, value in printed.items() if value == top}
    floors = {method: row.floor_q95 * scale for method, row in rows.items()}
    floor = "" if np.isnan(floors[floor_source]) else form(floors[floor_source])

    def note(method: str, row: Decision) -> str:
        if row.zero_likelihood > 0:  # only the NLL has it: it is finite by its floor alone
            return f"∞, {row.zero_likelihood:.3g}"
        # Below the last row's floor a mark would look like a mistake.
        is_odd = row.beyond_floor and floor and row.mean * scale < floors[floor_source]
        return f"{OWN_FLOOR} {form(floors[method])}" if is_odd else ""

    cells = {
        method: Cell(
            mean=means[method],
            spread="" if np.isnan(spreads[method]) else form(spreads[method]),
            best=method in best,
            beyond=bool(row.beyond_floor),
            note=note(method, row),
            row=row,
        )
        for method, row in rows.items()
    }
    return Column(column, cells, floor)


def remarks_of(facts: Mapping[str, Any], decisions: Decisions) -> tuple[str, ...]:
    """For the tables' notes: weights, splits without a patch, settings that are not the paper's."""
    methods, calibrators = decisions.methods, facts["calibrators"]
    remarks = []
    if weights := facts["logits"].get("weights"):
        remarks.append("Points have weights, from {:.3g} to {:.3g}.".format(*weights))
    for method in methods:
        counts = calibrators.get(method, {}).get("patches", [])
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
        told = ", ".join(f"{count} for {name} (the paper: {paper})" for count, name, paper in rows)
        remarks.append(f"Tuning runs: {told}; the tuning “paper” has as many as the paper.")
    points = facts["evaluation"]["utility_batch"]
    if points is not None:
        batches = f"disjoint batches of {points} test points or a few more"
        remarks.append(f"Utility metrics: means over {batches}.")
    return tuple(remarks)
