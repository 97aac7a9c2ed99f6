"""Sentences below a table of numbers: what its marks mean, and what is special about this run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from utility_calibration.metrics.registry import PURPOSES, Metric
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from ..scoring.decisions import HARMED, Decision, Decisions
from ..scoring.uses import is_own, is_use, label_of
from .names import BEYOND_CHANCE, MARK, method_name
from .tables import ResultTable
from .wording import bound, listed, names
from .worst import LOSSES

INTERVALS = {
    "bootstrap": "The interval is 1.96 standard errors wide on each side. These come from drawing "
    "the test cases anew many times (a bootstrap).",
    "corrected": "The interval allows for the cases that splits share (Nadeau & Bengio 2003).",
}
TESTS = {
    "corrected": "The tests compare two methods in the same splits, so they can tell methods apart "
    "whose intervals overlap (5 %, corrected for the cases that splits share and by Holm's steps).",
    "bootstrap": "The tests compare two methods on the same cases, so they can tell methods apart "
    "whose intervals overlap (bootstrap of the difference, Holm over methods, 5 %). How results "
    "vary with the cases that fit the methods is not known.",
}
LEAST = (
    " A test may find a method worse, and find another one with a larger mean not worse. By chance "
    "alone the truly best method of a column is found worse 1 time in 20."
)
BEYOND = f"{MARK}: {BEYOND_CHANCE}."
TOGETHER = (
    f"{MARK}: larger than chance alone explains. All groups of a column, and all utilities of your "
    f"own, are tested together: by chance alone some of them get a {MARK} 1 time in 20. The CSV "
    "file has the p-value of each alone (p_value)."
)
FLOOR = (
    "What chance alone makes is found by drawing labels from the method's own probabilities, many "
    "times. The table below has its size (the noise floor)."
)
WITHOUT_FLOOR = (
    f"there is no {MARK} and no upper bound (–), because labels cannot be drawn from rows that do "
    "not sum to one."
)
CERTIFICATE = (
    "95 % upper bounds on the largest of the errors in {}{}: {}. They do not hold for other "
    "columns."
)
MORE = {
    "brier": "The squared errors of all classes of a case are added up.",
    "cwe_bin": "Bins of equal weight have the same number of cases each.",
    "u_lin_median": "Random users are imagined: each gives every class (U_lin) or every place of "
    "the true class (U_rank) a random value, and expects the mean that the probabilities promise.",
}
"""What else a reader must know of a column."""
CLUSTERED = (
    "All cases of a cluster are on the same side: they fit the methods, or they test them. The ± "
    "and the tests treat each of the {:,} clusters as one case."
)
OF_OWN = "error of your own utility, in its unit"
OF_LOSSES = "error of the predicted cost of your decisions, in the unit of your losses"
PAPER_RUNS = {"dirichlet": 80, "patching": 20}  # the paper's tuning runs (app. C.1)
STARTS = {
    "pooled": "the average of three simple methods from which it starts",
    "temperature": "temperature scaling",
    "softmax": "no calibration",
}
"""What a patching equals that made no patch, by its option `start`."""


class Note(NamedTuple):
    """What a reader must know of a table."""

    short: str
    """For a terminal and a caption; "" if the files alone say it."""
    more: str = ""
    """What the files add."""


def brief_notes(table: ResultTable, mark: str) -> list[str]:
    """The notes in short, for a terminal and a caption; `mark` names how best cells look."""
    return [note.short for note in notes_of(table, mark) if note.short]


def all_notes(table: ResultTable) -> list[str]:
    """What a reader must know, one sentence or more each."""
    notes = [" ".join(filter(None, note)) for note in notes_of(table, "Bold")]
    return [*notes, *table.spec.remarks]


def smaller_is_better(table: ResultTable) -> str:
    """The direction of a table's numbers."""
    larger = [
        column.metric.text.lower() for column in table.columns if column.metric.larger_is_better
    ]
    return f"Smaller is better, except for {listed(larger)}." if larger else "Smaller is better."


def notes_of(table: ResultTable, mark: str) -> list[Note]:
    """What the marks and numbers of a table mean; `mark` names how its best cells look."""
    is_paper = table.spec.look == "paper"
    notes = [_of_means(table, is_paper)]
    if is_paper:
        notes.append(Note(f"{mark}: the best mean."))
    elif table.decisions.test:
        tests = TESTS[table.decisions.test] + LEAST
        notes.append(Note(f"{mark}: no test finds this method worse than the best one.", tests))
    if table.has_floor:
        notes += _of_floors(table)
    if any(column.metric.key == "nll" for column in table.columns):
        notes.append(_of_likelihoods(table))
    notes.append(Note("", smaller_is_better(table)))
    return notes + [Note("", _meaning(c.metric)) for c in table.columns if c.metric.meaning]


def _meaning(column: Metric) -> str:
    """What a column measures, with the use that it belongs to."""
    meaning = column.meaning
    if is_own(column.key):
        meaning = OF_LOSSES if column.key == LOSSES else OF_OWN
    use = f" ({label_of(column.key)})" if is_use(column.key) else ""
    return " ".join(filter(None, [f"{column.text}{use}: {meaning}.", MORE.get(column.key)]))


def _rows(table: ResultTable) -> list[Decision]:
    """The decisions behind all cells."""
    return [row for column in table.columns for row in column.rows.values()]


def _of_means(table: ResultTable, is_paper: bool) -> Note:
    """The note on what the means are taken over, and on what ± means."""
    splits = table.decisions.splits
    over = f"Mean over {splits} splits" if splits > 1 else "One split"
    for column in table.columns:
        for row in column.rows.values():
            if not math.isnan(column.spread(row)):
                if is_paper:
                    return Note(f"{over} ± 2 standard errors.")
                interval = INTERVALS[_rows(table)[0].interval]
                return Note(f"{over}. ±: 95 % confidence interval.", interval)
    return Note(f"{over}.")


def _of_floors(table: ResultTable) -> list[Note]:
    """What † means, who has no floor, and the bounds on all errors."""
    rows = _rows(table)
    methods, uppers = table.decisions.methods, table.decisions.users
    beyond = TOGETHER if any(row.is_one_of_many for row in rows) else BEYOND
    notes = [Note(beyond, FLOOR)]
    with_floor = {row.method for row in rows if row.beyond_floor is not None}
    without = [method for method in methods if method not in with_floor]
    if without:
        notes.append(Note("", f"{names(without)}: {WITHOUT_FLOOR}"))
    if any(math.isfinite(upper) for upper in uppers.values()):
        bounds = [f"{method_name(m)} {bound(uppers.get(m, math.nan))}" for m in methods]
        average = ", means over the splits" if table.decisions.splits > 1 else ""
        covered = [c.metric.text for c in table.columns if c.metric.key in PURPOSES]
        notes.append(Note("", CERTIFICATE.format(listed(covered), average, ", ".join(bounds))))
    return notes


def _of_likelihoods(table: ResultTable) -> Note:
    """What ∞ beside an NLL means, and how the NLL stays finite."""
    floored = f"The NLL takes probabilities below {LIKELIHOOD_FLOOR:g} as this number."
    if any(row.zero_likelihood > 0 for row in _rows(table)):
        meaning = "(∞, 2): the NLL is infinite, because 2 labels per split had probability 0."
        return Note(meaning, floored)
    return Note("", floored)


def remarks_of(facts: Mapping[str, Any], decisions: Decisions) -> tuple[str, ...]:
    """For the tables' notes: weights, clusters, splits without a patch, how settings were tried."""
    methods, calibrators = decisions.methods, facts["calibrators"]
    remarks = []
    weights = facts["logits"].get("weights")
    if weights:
        remarks.append("Cases have weights, from {:.3g} to {:.3g}.".format(*weights))
    if decisions.clusters:
        remarks.append(CLUSTERED.format(decisions.clusters))
    for method in methods:
        counts = calibrators.get(method, {}).get("patches", [])
        if 0 in counts:
            start = STARTS.get(calibrators[method]["config"].get("start", "softmax"), "its start")
            where = f"in {counts.count(0)} of {len(counts)} splits no range needed a repair"
            remarks.append(f"{method_name(method)}: {where}; there it equals {start}.")
    for method in decisions.marked(HARMED):
        worse = calibrators[method]["worse_than_temperature"]
        remarks.append(
            f"{method_name(method)}: in {sum(worse)} of {len(worse)} splits no setting that was "
            "tried was better than temperature scaling on cases kept aside for this. Where all "
            "were at least 2 % worse, temperature scaling was taken in its place."
        )
    remarks += _of_tuning(calibrators, methods)
    points = facts["evaluation"]["utility_batch"]
    if points is not None:
        batches = f"disjoint batches of {points} test cases or a few more"
        remarks.append(f"Utility metrics: means over {batches}.")
    return tuple(remarks)


def patch_counts(
    calibrators: Mapping[str, Mapping[str, Any]], methods: Sequence[str]
) -> tuple[str, ...]:
    """How many ranges each method repaired in every split."""
    lines = []
    for method in methods:
        counts = calibrators.get(method, {}).get("patches", [])
        if counts:
            listed_counts = ", ".join(map(str, counts))
            lines.append(
                f"{method_name(method)}: repaired ranges (patches) in each split: {listed_counts}."
            )
    return tuple(lines)


def _of_tuning(calibrators: Mapping[str, Any], methods: Sequence[str]) -> list[str]:
    """That methods were tuned by other numbers of runs than the paper's; nothing if they were."""
    counts = []
    is_as_printed = True
    for method, printed in PAPER_RUNS.items():
        if method not in methods:
            continue
        runs = calibrators[method]["config"].get("tuning_runs", printed)
        is_as_printed &= runs == printed
        counts.append(f"{runs} for {method_name(method)} (the paper: {printed})")
    if is_as_printed:
        return []
    return [
        f"Number of settings that were tried: {', '.join(counts)}. Fewer are faster, and may miss "
        "a slightly better one. The option --tuning paper tries as many as the paper."
    ]
