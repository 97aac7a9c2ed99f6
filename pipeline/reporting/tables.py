"""The table of one benchmark: its cells as text, their digits, their marks, and its notes.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one scaled
column per metric, mean ± half of a 95 % interval, in bold every method that no test finds worse
than the best, every number beyond its noise floor marked. A last row shows a noise floor: what a
calibrated classifier would score on a sample of this size. The paper's own look: ± 2 standard
errors, the best mean bold. All numbers and tests come from the decisions on the benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from metrics.registry import Metric, metric
from metrics.scores import LIKELIHOOD_FLOOR
from pipeline.reporting.names import FLOOR_METHOD, method_name
from pipeline.reporting.wording import bound, decimals, names, number
from pipeline.scoring.decisions import HARMED, Decision, Decisions

Look = Literal["default", "paper"]
MARK = "†"
"""Behind every number beyond its noise floor."""
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
PAPER_RUNS = {"dirichlet": 80, "patching": 20}
"""The paper's tuning runs (app. C.1)."""
STARTS = {"temperature": "temperature scaling", "softmax": "no calibration"}
"""What a patching equals that made no patch, by its option `start`."""


@dataclass(frozen=True)
class TableSpec:
    """What a table shows: `metrics` are keys in order; `name` is the stem of its files.

    remarks: sentences below the table. look: "default", or "paper": two standard errors, the best
    mean in bold.
    """

    name: str
    title: str
    metrics: Sequence[str]
    remarks: tuple[str, ...] = ()
    look: Look = "default"


@dataclass(frozen=True)
class Cell:
    """Rounded text of a mean and of its spread ("" where there is none), and how it is marked.

    best: in bold. note: what a reader must know of this cell. row: its decision.
    """

    mean: str
    spread: str
    best: bool
    note: str
    row: Decision

    @property
    def beyond(self) -> bool:
        """Whether it is beyond the method's own noise floor."""
        return bool(self.row.beyond_floor)


@dataclass(frozen=True)
class Column:
    """The cells of one metric by method, and the text of the last row's floor, "" without one."""

    metric: Metric
    cells: Mapping[str, Cell]
    floor: str


@dataclass(frozen=True)
class ResultTable:
    """One benchmark's table; `floor_source` is the method whose probabilities made the floors."""

    spec: TableSpec
    columns: tuple[Column, ...]
    decisions: Decisions
    floor_source: str

    @classmethod
    def of(cls, decisions: Decisions, spec: TableSpec) -> ResultTable:
        """The table; a metric that was not measured gets no column."""
        keys = [key for key in spec.metrics if decisions.column(key)]
        source = _floor_source(decisions)
        columns = tuple(_column(decisions.column(key), spec.look, source) for key in keys)
        return cls(spec, columns, decisions, source)

    @property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """Per method its key and its cells, in the order of the columns."""
        return [(m, [column.cells[m] for column in self.columns]) for m in self.decisions.methods]

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
        is_paper, decisions = self.spec.look == "paper", self.decisions
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
            notes += [(f"{BEYOND} {last}", FLOOR), *(("", note) for note in self._on_floors())]
        if any(column.metric.key == "nll" for column in self.columns):
            infinite = "∞: infinite NLL, because so many labels had probability 0."
            floored = f"The NLL takes probabilities below {LIKELIHOOD_FLOOR:g} as this number."
            notes.append((infinite if any(cell.note for cell in cells) else "", floored))
        return notes

    def _on_floors(self) -> Iterator[str]:
        """Methods without a floor, metrics without a method beyond it, and the certificates."""
        methods, uppers = self.decisions.methods, self.decisions.users
        without = [m for m, cells in self.rows if all(c.row.beyond_floor is None for c in cells)]
        if without:
            yield (
                f"{names(without)}: no noise floor, no {MARK} and no certificate (–), because "
                "labels cannot be drawn from rows that do not sum to one."
            )
        with_floor = [method for method in methods if method not in without]
        within = [
            column.metric.text
            for column in self.columns
            if all(column.cells[method].row.beyond_floor is False for method in with_floor)
        ]
        if with_floor and within:
            yield (
                f"No method is beyond its noise floor in {', '.join(within)}: these columns are no "
                "evidence against the calibration of any method."
            )
        if any(math.isfinite(upper) for upper in uppers.values()):
            bounds = [f"{method_name(m)} {bound(uppers.get(m, math.nan))}" for m in methods]
            over = ", on average over the splits" if self.decisions.splits > 1 else ""
            yield (
                "The 95 % upper bound on the error of any user of these classes (U_CWE, U_topK, "
                f"U_dcg and the like){over} and in units of utility: {', '.join(bounds)}."
            )


def _column(rows: Mapping[str, Decision], look: str, floor_source: str) -> Column:
    """One metric's cells and its noise floor, all with the same number of digits."""
    column = metric(next(iter(rows.values())).metric)
    scale, is_paper = 10.0**column.power, look == "paper"
    spreads = {m: scale * (row.two_se if is_paper else row.half_width) for m, row in rows.items()}
    digits = decimals([row.mean * scale for row in rows.values()], list(spreads.values()))
    means = {method: number(row.mean * scale, digits) for method, row in rows.items()}
    best = {method for method, row in rows.items() if row.not_worse}
    if is_paper:  # the best printed mean
        printed = {method: float(text.replace("∞", "inf")) for method, text in means.items()}
        finite = [value for value in printed.values() if np.isfinite(value)]
        top = (max if column.larger_is_better else min)(finite, default=None)
        best = {method for method, value in printed.items() if value == top}
    cells = {
        method: Cell(
            means[method],
            "" if np.isnan(spreads[method]) else number(spreads[method], digits),
            best=method in best,
            # Only the NLL has zero_likelihood: it is finite by its floor alone.
            note=f"∞, {row.zero_likelihood:.3g}" if row.zero_likelihood > 0 else "",
            row=row,
        )
        for method, row in rows.items()
    }
    floor = rows[floor_source].floor_q95 * scale
    return Column(column, cells, "" if np.isnan(floor) else number(floor, digits))


def _floor_source(decisions: Decisions) -> str:
    """Temperature scaling, or the first method with a floor."""
    with_floor = {m for (m, _), row in decisions.rows.items() if not np.isnan(row.floor_mean)}
    methods = decisions.methods
    return next((m for m in (FLOOR_METHOD, *methods) if m in with_floor), methods[0])


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
            remarks.append(
                f"{method_name(method)}: 0 patches in {counts.count(0)} of {len(counts)} splits, "
                f"where it equals {start}."
            )
    for method in decisions.marked(HARMED):
        worse = calibrators[method]["worse_than_temperature"]
        remarks.append(
            f"{method_name(method)} ({HARMED}): in {sum(worse)} of {len(worse)} splits no setting "
            "that was tried is better than temperature scaling on held-out points."
        )
    runs = {
        method: calibrators[method]["config"].get("tuning_runs", paper_runs)
        for method, paper_runs in PAPER_RUNS.items()
        if method in methods
    }
    if any(runs[method] != PAPER_RUNS[method] for method in runs):
        words = [f"{runs[m]} for {method_name(m)} (the paper: {PAPER_RUNS[m]})" for m in runs]
        remarks.append(
            f"Tuning runs: {', '.join(words)}; the tuning “paper” has as many as the paper."
        )
    points = facts["evaluation"]["utility_batch"]
    if points is not None:
        remarks.append(
            f"Utility metrics: means over disjoint batches of {points} test points or a few more."
        )
    return tuple(remarks)
