"""The table of one benchmark: its cells as text, their digits, their marks, and its notes.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one scaled
column per metric, mean ± half of a 95 % interval, in bold every method that no test finds worse
than the best, every number beyond its noise floor marked. A last row shows a noise floor: what a
calibrated classifier would score on a sample of this size. The paper's own look: ± 2 standard
errors, the best mean bold. All numbers and tests come from the decisions on the benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from metrics.registry import Metric, metric
from metrics.scores import LIKELIHOOD_FLOOR
from pipeline.reporting.names import FLOOR_METHOD, method_name
from pipeline.reporting.wording import bound, names
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
FLOOR = (
    "The floor is the 95 % quantile of the errors that the method's own probabilities show on "
    "these points when labels are drawn from them. Each method has a floor of its own."
)
PAPER_RUNS = {"dirichlet": 80, "patching": 20}
"""The paper's tuning runs (app. C.1)."""


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
        spread = f"{over} ± {'2 standard errors' if is_paper else 'half of a 95 % interval'}."
        notes = [(f"{over}.", "")]
        if any(cell.spread for cell in cells):
            notes = [(spread, "" if is_paper else INTERVALS[cells[0].row.interval])]
        if is_paper:
            notes.append((f"{mark}: the best mean.", ""))
        elif decisions.test:
            notes.append((f"{mark}: no test finds it worse than the best.", self._tests()))
        if self.has_floor:
            short = (
                f"{MARK}: beyond the method's noise floor, which chance exceeds in 5 % of cases. "
                f"Last row: the floor of {method_name(self.floor_source)}."
            )
            notes += [(short, FLOOR), *(("", note) for note in self._notes_on_floors())]
        if any(column.metric.key == "nll" for column in self.columns):
            infinite = "∞: infinite NLL, because so many labels had probability 0."
            floored = f"The NLL takes probabilities below {LIKELIHOOD_FLOOR:g} as this number."
            notes.append((infinite if any(cell.note for cell in cells) else "", floored))
        return notes

    def _tests(self) -> str:
        return TESTS[self.decisions.test] + LEAST

    def _notes_on_floors(self) -> list[str]:
        """Methods without a floor, metrics without a method beyond it, and the certificates."""
        notes, methods = [], self.decisions.methods
        without = [m for m, cells in self.rows if all(c.row.beyond_floor is None for c in cells)]
        if without:
            notes.append(
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
            notes.append(
                f"No method is beyond its noise floor in {', '.join(within)}: these columns are no "
                "evidence against the calibration of any method."
            )
        uppers = self.decisions.users or {}
        if any(math.isfinite(upper) for upper in uppers.values()):
            bounds = ", ".join(
                f"{method_name(m)} {bound(uppers.get(m, math.nan))}" for m in methods
            )
            over = ", on average over the splits" if self.decisions.splits > 1 else ""
            notes.append(
                "The 95 % upper bound on the error of any user of these classes (U_CWE, U_topK, "
                f"U_dcg and the like){over} and in units of utility: {bounds}."
            )
        return notes


def number(value: float, decimals: int) -> str:
    """A rounded number as text; `∞` for infinity, `–` for no value, never `-0.0`."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def decimals(means: Sequence[float], spreads: Sequence[float]) -> int:
    """Decimal places of a column: two significant digits of the median spread, at most three.

    Without a spread (one split, or all equal) the median mean gets three significant digits.
    """
    usable = [spread for spread in spreads if np.isfinite(spread) and spread > 0]
    sizes = usable or [abs(mean) for mean in means if np.isfinite(mean) and mean != 0] or [1.0]
    significant = 2 if usable else 3
    return int(np.clip(significant - 1 - np.floor(np.log10(np.median(sizes))), 0, 3))


def _column(rows: Mapping[str, Decision], look: str, floor_source: str) -> Column:
    """One metric's cells and its noise floor, all with the same number of digits."""
    column = metric(next(iter(rows.values())).metric)
    scale, is_paper = 10.0**column.power, look == "paper"
    spreads = {m: scale * (row.two_se if is_paper else row.half_width) for m, row in rows.items()}
    digits = decimals([row.mean * scale for row in rows.values()], list(spreads.values()))
    means = {method: number(row.mean * scale, digits) for method, row in rows.items()}
    best = {method for method, row in rows.items() if row.not_worse}
    cells = {
        method: Cell(
            means[method],
            "" if np.isnan(spreads[method]) else number(spreads[method], digits),
            best=method in (_best_means(means, column) if is_paper else best),
            # Only the NLL has zero_likelihood: it is finite by its floor alone.
            note=f"∞, {row.zero_likelihood:.3g}" if row.zero_likelihood > 0 else "",
            row=row,
        )
        for method, row in rows.items()
    }
    floor = rows[floor_source].floor_q95 * scale
    return Column(column, cells, "" if np.isnan(floor) else number(floor, digits))


def _best_means(means: Mapping[str, str], column: Metric) -> set[str]:
    """The methods of the best printed mean, which the paper's look has in bold."""
    numbers = {method: float(text.replace("∞", "inf")) for method, text in means.items()}
    finite = [value for value in numbers.values() if np.isfinite(value)]
    top = (max(finite) if column.larger_is_better else min(finite)) if finite else None
    return {method for method, value in numbers.items() if value == top}


def _floor_source(decisions: Decisions) -> str:
    """Temperature scaling, or the first method with a floor."""
    with_floor = {m for (m, _), row in decisions.rows.items() if not np.isnan(row.floor_mean)}
    methods = decisions.methods
    return next((m for m in (FLOOR_METHOD, *methods) if m in with_floor), methods[0])


def remarks_of(facts: Mapping[str, Any], decisions: Decisions) -> tuple[str, ...]:
    """For the tables' notes: weights, splits without a patch, settings that are not the paper's."""
    methods = decisions.methods
    remarks = [remark for method in methods if (remark := _without_patches(facts, method))]
    for method in decisions.marked(HARMED):
        worse = facts["calibrators"][method]["worse_than_temperature"]
        remarks.append(
            f"{method_name(method)} ({HARMED}): in {sum(worse)} of {len(worse)} splits no setting "
            "that was tried is better than temperature scaling on held-out points."
        )
    if weights := facts["logits"].get("weights"):
        remarks.insert(0, "Points have weights, from {:.3g} to {:.3g}.".format(*weights))
    runs = {
        method: facts["calibrators"][method]["config"].get("tuning_runs", paper_runs)
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


def _without_patches(facts: Mapping[str, Any], method: str) -> str:
    """In how many splits a patching made no patch; empty where it always made one."""
    record = facts["calibrators"].get(method, {})
    counts = record.get("patches", [])
    if 0 not in counts:
        return ""
    start = {"temperature": "temperature scaling", "softmax": "no calibration"}
    config = record["config"].get("start", "softmax")
    return (
        f"{method_name(method)}: 0 patches in {counts.count(0)} of {len(counts)} splits, where it "
        f"equals {start.get(config, 'its start')}."
    )
