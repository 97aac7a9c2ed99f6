"""The plan of a request: the tasks that make its logits, fits and scores, each asked for once.

tasks.py says what each task is. A plan keeps what it has found: it does not notice a file that a
stage writes after it asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import NamedTuple

from .harness.cache import record_of
from .harness.run_log import last_errors
from .harness.settings import Settings
from .harness.task import Task
from .harness.units import Unit
from .scoring.points import CachedLogits, find_logits
from .tasks import fit_task, logits_task, score_task

DONE, MISSING, STALE, FAILED = STATES = ("done", "missing", "stale", "failed")


class State(NamedTuple):
    """The state of a unit."""

    name: str
    """One of STATES."""
    reason: str = ""
    """Empty for what is done."""


def not_fitted(units: Sequence[Unit]) -> str:
    """What to tell of units whose fit is not up to date."""
    more = f" and {len(units) - 1} more" if len(units) > 1 else ""
    message = "not fitted with these settings and this code"
    fix = "run utility-calibration fit with the same arguments first"
    return f"{units[0]}{more}: {message}; {fix}"


class Plan:
    """Units, and the tasks that make them."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = list(units)
        self.settings: dict[str, Settings] = {}
        """Of each benchmark by name, with the first calibrator. The last benchmark comes first, and
        reports have this order."""
        for unit in reversed(self.units):
            self.settings[unit.benchmark] = unit.settings
        self._logits_of: dict[str, CachedLogits] = {}
        self._fits: dict[Unit, Task] = {}
        self._scores: dict[Unit, Task] = {}

    @cached_property
    def all_splits(self) -> list[Unit]:
        """The units of all splits of each benchmark and calibrator."""
        first_of_pair: dict[tuple[str, str], Unit] = {}
        for unit in self.units:
            first_of_pair.setdefault((unit.benchmark, unit.calibrator), unit)
        units: list[Unit] = []
        for unit in first_of_pair.values():
            splits = range(unit.settings.splits.count)
            units += [replace(unit, split=split) for split in splits]
        return units

    @cached_property
    def logits(self) -> dict[str, Task]:
        """The task of each benchmark's logits."""
        return {name: logits_task(settings) for name, settings in self.settings.items()}

    def found(self, benchmark: str) -> CachedLogits:
        """The logits that are there; CorruptFile where there are none."""
        if benchmark not in self._logits_of:
            self._logits_of[benchmark] = find_logits(self.settings[benchmark])
        return self._logits_of[benchmark]

    def fit(self, unit: Unit) -> Task:
        """The task that fits a unit, whose logits are there."""
        if unit not in self._fits:
            self._fits[unit] = fit_task(unit, self.found(unit.benchmark))
        return self._fits[unit]

    def score(self, unit: Unit) -> Task:
        """The task that scores a unit, whose fit is there."""
        if unit not in self._scores:
            self._scores[unit] = score_task(unit, self.found(unit.benchmark))
        return self._scores[unit]

    def states(self) -> Iterator[tuple[Unit, State]]:
        """Each unit with its state, which is that of the first task that is not done."""
        errors = last_errors(next(iter(self.settings.values())).paths.data)
        states_of_logits = {}
        for name, task in self.logits.items():
            states_of_logits[name] = _state(task, "no logits", errors)
        for unit in self.units:
            state = states_of_logits[unit.benchmark]
            if state.name == DONE:
                state = _state(self.fit(unit), "not fitted", errors)
            if state.name == DONE:
                state = _state(self.score(unit), "not evaluated", errors)
            yield unit, state


def _state(task: Task, absent: str, errors: Mapping[str, str]) -> State:
    """The state of one task; `absent` is the reason where its file is not there."""
    if task.is_up_to_date():
        return State(DONE)
    error = errors.get(task.place.as_posix())
    if error:
        return State(FAILED, error)
    record = record_of(task.path)
    if record is None:
        return State(MISSING, absent)
    settings = task.settings
    for name, key, wanted in (
        ("calibrator", "config", settings.calibrator),
        ("splits", "splits", asdict(settings.splits)),
        ("evaluation", "evaluation", settings.evaluation.measured()),
    ):
        if key in record and record[key] != wanted:
            return State(STALE, f"other settings of {name}")
    return State(STALE, "other input or other code")
