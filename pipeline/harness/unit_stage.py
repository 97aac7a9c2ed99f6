"""What fit and evaluate share: tasks of one unit each, made by one process at a time, shared."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from pipeline.harness.archives import Archive
from pipeline.harness.artifacts import write_json
from pipeline.harness.cached_logits import CachedLogits
from pipeline.harness.columns import columns_of
from pipeline.harness.locks import claimed, noting_failure
from pipeline.harness.machine import device_name, now, run_notes
from pipeline.harness.runner import Outcome, messages_of, run_stage, side_by_side
from pipeline.harness.shared import adopt, share
from pipeline.harness.units import Request, Settings, Unit

Save = Callable[[Path], object]
"""Writes an npz to a path."""


@dataclass(frozen=True)
class UnitTask(ABC):
    """Something to make of one unit on its logits, and the hash that the result will carry."""

    unit: Unit
    logits: CachedLogits
    hash: str

    @property
    @abstractmethod
    def archive(self) -> Archive:
        """Where the result lies."""

    @property
    def settings(self) -> Settings:
        """The unit's configuration."""
        return self.unit.settings

    @property
    def size(self) -> int:
        """Its logits, n x C."""
        return self.logits.n * self.logits.classes

    def is_done(self) -> bool:
        """Whether the unit's folder holds the whole result of this very task."""
        return self.archive.holds(self.hash)

    def __str__(self) -> str:
        return str(self.unit)


T = TypeVar("T", bound=UnitTask)


def run_unit_stage(
    title: str, tasks: Sequence[T], make: Callable[[T], bool], request: Request | None
) -> None:
    """`make` every result that is not up to date; share those of a whole suite if all succeed.

    Raises:
        UnitsFailed: the units that failed, after all others are done.
    """
    row = attrgetter("unit.calibrator")
    for task in run_stage(title, tasks, UnitTask.is_done, make, run_units, row):
        task.archive.tidy()
    if request is not None:
        for calibrator in request.calibrators:
            own = [task for task in tasks if task.unit.calibrator == calibrator]
            files = {task.unit.shared_name: task.archive.path for task in own}
            share(request, own[0].settings, f"{own[0].archive.stage}/{calibrator}", files)


def run_units(title: str, function: Callable[[T], object], tasks: Sequence[T]) -> list[Outcome]:
    """`side_by_side`, once the columns that the tasks' units are for are known to exist."""
    check_columns([task.unit for task in tasks])
    return side_by_side(title, function, tasks)


def check_columns(units: Sequence[Unit]) -> None:
    """Tell an unknown metric before hours of work; imports torch, so where there is work only.

    Raises:
        InputError: a benchmark's key that is no metric.
    """
    for unit in {unit.benchmark: unit for unit in units}.values():
        columns_of(unit.settings)


def adopt_archives(units: Sequence[Unit], archive_of: Callable[[Unit], Archive]) -> None:
    """Take the results that came by `dvc pull` where a unit has none."""
    for unit in units:
        archive = archive_of(unit)
        stage = f"{archive.stage}/{unit.calibrator}"
        if adopt(unit.settings, stage, {unit.shared_name: archive.path}):
            archive.restore_json()


def make_once(
    task: T, make: Callable[[T, str], tuple[Save, Mapping[str, Any], Mapping[str, Any]]]
) -> bool:
    """Publish what `make(task, device)` returns; False where another process just did.

    It returns what writes the arrays, their record, and notes of the run for the file beside it.

    Raises:
        Busy: another process makes it now.
        OtherSettings: another process makes it with other settings.
    """
    archive = task.archive
    with noting_failure(archive.failed), claimed(archive.running, str(task), task.hash):
        if not task.settings["force"] and task.is_done():
            return False
        device = device_name(task.settings["device"])
        began = now()
        with _noting_warnings() as raised:
            save, record, more = make(task, device)
        notes = {
            "hash": task.hash,
            **run_notes(began, device),
            **more,
            "warnings": messages_of(raised),
        }
        archive.publish(save, {"hash": task.hash, **record})
        write_json(archive.run, notes)
    return True


@contextmanager
def _noting_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect what the block warns of, then pass it on to what runs the unit, which tells it."""
    raised: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as raised:
            yield raised
    finally:
        for one in raised:  # not warned of again: filters have let it pass already
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
