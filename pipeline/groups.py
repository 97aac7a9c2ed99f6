"""Each group of points by itself, where the logits' file names groups; unit: benchmark x method.

The calibrators are those of all points; their test points are scored group by group, so that noise
floors, intervals and worst intervals are those of the group's size. Kept in `groups.npz` beside the
splits, with its record inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipeline.evaluate import held_out, numbers_of, scored
from pipeline.failures import FailureTask, brought_up_to_date, held_out_together, tasks_of, worst_of
from pipeline.fit import FitTask, fit_tasks
from pipeline.harness.artifacts import read_npz, save_npz, sha256_of_json
from pipeline.harness.cached_logits import logits_record
from pipeline.harness.fingerprint import source_fingerprint
from pipeline.harness.splits import indices_of
from pipeline.harness.units import Settings, Unit
from pipeline.reporting.collect import UnitResult
from pipeline.reporting.pooled import pooled

if TYPE_CHECKING:  # torch takes a second
    from metrics.scorecard import Scorecard

TITLE = "groups"
CODE = "pipeline.groups.write_groups"
LEAST = 20
"""Test points that a group needs in every split to be scored; fewer are told."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupResult:
    """One group of points on one benchmark.

    `units`: per method and split, as the report reads those of all points; none for a group with
    fewer than LEAST test points in some split. `worst`: per method what pipeline.failures finds.
    """

    name: str
    points: int
    units: list[UnitResult] = field(default_factory=list)
    worst: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def group_sizes(settings: Settings) -> dict[str, int]:
    """The groups of a benchmark's points and how many points each has; most have none."""
    sizes: dict[str, int] = logits_record(settings).get("groups", {})
    return sizes


def find_groups(units: Sequence[Unit]) -> dict[str, list[GroupResult]]:
    """The groups of every benchmark among `units`, scored where that is out of date.

    Returns:
        {benchmark: groups in the order of their names}; nothing for a benchmark without groups.

    Raises:
        UnitsFailed: some could not be scored, after all others are done.
    """
    tasks = [task for task in tasks_of(units) if group_sizes(task.settings)]
    found: dict[str, dict[str, GroupResult]] = {}
    for task in brought_up_to_date(TITLE, tasks, _is_current, write_groups):
        sizes = group_sizes(task.settings)
        empty = {name: GroupResult(name, size) for name, size in sizes.items()}
        groups = found.setdefault(task.units[0].benchmark, empty)
        for name, entry, arrays in _read(task):
            method = task.units[0].calibrator
            groups[name].units.extend(_unit_results(task, entry, arrays))
            groups[name].worst[method] = entry["worst_intervals"]
    return {benchmark: list(groups.values()) for benchmark, groups in found.items()}


def write_groups(task: FailureTask) -> None:
    """Score the groups of one method's test points over all splits and write its file."""
    fits = fit_tasks(task.units)
    groups = read_npz(fits[0].logits.path)["groups"]
    cards: dict[str, list[Scorecard]] = {}
    points: dict[str, list[int]] = {}
    for fit in fits:
        test = held_out(fit, "cpu")
        for name in _large_enough(groups, fits):
            own = test.where(groups[test.points] == name)
            cards.setdefault(name, []).append(scored(fit, own))
            points.setdefault(name, []).append(len(own.labels))
    together = held_out_together(fits)
    record, arrays = {}, {}
    for place, name in enumerate(cards):
        record[name] = {
            "splits": [
                {**numbers_of(card), "n_test": count}
                for card, count in zip(cards[name], points[name], strict=True)
            ],
            "worst_intervals": worst_of(
                fits[0], [one.where(groups[one.points] == name) for one in together]
            ),
        }
        means = pooled([card.ecdf | card.draws for card in cards[name]])
        arrays.update({f"{place}-{key}": values for key, values in means.items()})
    content = {"hash": _hash(task), "groups": record}
    save = partial(save_npz, arrays=arrays)
    task.units[0].files.groups.publish(save, content)


def _large_enough(groups: NDArray[np.str_], fits: Sequence[FitTask]) -> list[str]:
    """The groups with LEAST test points in every split, in the order of their names."""
    tested = [indices_of(fit.settings, len(groups), fit.unit.split)[1] for fit in fits]
    names: list[str] = np.unique(groups).tolist()
    return [name for name in names if min((groups[t] == name).sum() for t in tested) >= LEAST]


def _hash(task: FailureTask) -> str:
    """Identifies the evaluations that the scores belong to, and the code that made these."""
    return sha256_of_json({"of": task.hash, "code": source_fingerprint(CODE)})


def _is_current(task: FailureTask) -> bool:
    return task.units[0].files.groups.holds(_hash(task))


def _read(task: FailureTask) -> Iterator[tuple[str, dict[str, Any], dict[str, Floats]]]:
    """Name, record and arrays of each group that was scored."""
    archive = task.units[0].files.groups
    record, arrays = archive.record() or {}, read_npz(archive.path)
    for place, (name, entry) in enumerate(record["groups"].items()):
        start = f"{place}-"
        own = {key[len(start) :]: a for key, a in arrays.items() if key.startswith(start)}
        yield name, entry, {key: values.astype(np.float64) for key, values in own.items()}


def _unit_results(
    task: FailureTask, entry: Mapping[str, Any], arrays: dict[str, Floats]
) -> list[UnitResult]:
    share = 1 - task.settings["splits"]["calibration_fraction"]
    return [
        UnitResult.of((unit.benchmark, unit.calibrator, unit.split), one, arrays, share)
        for unit, one in zip(task.units, entry["splits"], strict=True)
    ]
