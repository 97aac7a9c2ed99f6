"""Results of one calibrator over all splits of a benchmark: worst intervals, groups of points.

Unit: benchmark x calibrator. It needs logits and fitted calibrators, so it is computed right after
the evaluation. It is stored in `worst.npz`, in the folder of the splits' scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from pipeline.harness.artifacts import save_npz, sha256_of_json
from pipeline.harness.cache import Record, Save, record_of
from pipeline.harness.code import code_digest
from pipeline.harness.parallel import Progress, Task, run_tasks
from pipeline.harness.units import Unit
from pipeline.scoring.cached_logits import find_logits
from pipeline.scoring.files import rounded
from pipeline.scoring.held_out import HeldOut, held_out, numbers_of, scored
from pipeline.scoring.splits import indices_of
from pipeline.scoring.tidy import Scored, curves_of, draws_of, rows_of
from pipeline.scoring.worst import SMALLEST_GROUP, class_names_of, splits_together, worst_of


def kept_across_splits(calibrators: Sequence[Sequence[Unit]]) -> dict[str, Record]:
    """The records of each calibrator's units, computed where they are not up to date.

    Raises:
        UnitsFailed: records that could not be computed, after all others are done.
    """
    tasks = {units[0].calibrator: across_splits_task(units) for units in calibrators}
    run_tasks(f"worst intervals {calibrators[0][0].benchmark}", list(tasks.values()))
    return {name: record_of(task.path) or {} for name, task in tasks.items()}


def across_splits_task(units: Sequence[Unit]) -> Task:
    """The task of one calibrator.

    Its key has the keys of the splits' scores, the groups of points, the classes' names, the code.
    """
    first, logits = units[0], find_logits(units[0].settings)
    content = {
        "scores": [str((record_of(unit.scores_path) or {}).get("key")) for unit in units],
        "arrays": logits.arrays_sha256,
        "class_names": logits.details.get("class_names"),
        "code": code_digest(__name__),
    }
    return Task(
        name=f"{first.benchmark} {first.calibrator}, all splits",
        settings=first.settings,
        path=first.scores_path.with_name("worst.npz"),
        key=sha256_of_json(content),
        size=logits.size,
        make=partial(across_splits, units),
    )


def across_splits(units: Sequence[Unit], device: str, progress: Progress) -> tuple[Save, Record]:
    """The record: `worst` by metric, and for each of `groups` its rows, curves and intervals.

    There are no arrays.
    """
    settings = units[0].settings
    logits = find_logits(settings)
    groups = logits.arrays().get("groups", np.empty(0, dtype=str))
    weights = logits.arrays().get("weights", np.ones(len(groups)))
    tested = [indices_of(settings, logits, unit.split)[1] for unit in units]
    names = [
        name
        for name in np.unique(groups).tolist()
        if min(((groups == name) & (weights > 0))[points].sum() for points in tested)
        >= SMALLEST_GROUP
    ]
    together = splits_together(logits.size, len(units))
    pooled: list[HeldOut] = []
    parts: dict[str, list[Scored]] = {name: [] for name in names}
    for unit in units[: len(units) if names else together]:
        test = held_out(unit, "cpu")
        for name, scores in parts.items():
            of_group = test.where(groups[test.points] == name)
            card = scored(settings, of_group)
            record = {**numbers_of(card), "n_test": len(of_group.labels)}
            scores.append(Scored(unit.split, record, card.ecdf | card.draws))
        if len(pooled) < together:
            pooled.append(test)
    classes = class_names_of(settings, logits.details)
    calibrator, by_group = units[0].calibrator, {}
    for name, scores in parts.items():
        own_points = [test.where(groups[test.points] == name) for test in pooled]
        worst = worst_of(settings, own_points, classes)
        by_group[name] = {
            "rows": rows_of(calibrator, scores, worst, name),
            "curves": curves_of(calibrator, scores, name),
            "draws": draws_of(scores),
            "worst": worst,
        }
    content = {"worst": worst_of(settings, pooled, classes), "groups": by_group}
    return partial(save_npz, arrays={}), rounded(content)
