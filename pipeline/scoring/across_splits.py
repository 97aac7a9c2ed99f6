"""What one calibrator shows over all splits of a benchmark: worst intervals, groups of points.

Unit: benchmark x calibrator. It needs logits and fitted calibrators, so it is computed right after
the evaluation and kept in `worst.npz` beside the splits' scores, with its record inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.harness.artifacts import read_npz, save_npz, sha256_of_json
from pipeline.harness.cache import Save, record_of
from pipeline.harness.cached_logits import find_logits, read_sidecar
from pipeline.harness.code import code_digest
from pipeline.harness.parallel import run_tasks
from pipeline.harness.splits import indices_of
from pipeline.harness.units import Settings, Unit
from pipeline.scoring.files import rounded
from pipeline.scoring.groups import large_enough, scored_split
from pipeline.scoring.held_out import HeldOut, held_out
from pipeline.scoring.tidy import Scored, curves_of, rows_of
from pipeline.scoring.worst import REPETITIONS, class_names_of, splits_together, worst_of


@dataclass(frozen=True)
class AcrossSplits:
    """All splits of one calibrator on one benchmark."""

    units: tuple[Unit, ...]
    key: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self.units[0].scores_path.with_name("worst.npz")

    @property
    def settings(self) -> Settings:
        """The configuration of its units."""
        return self.units[0].settings

    @property
    def size(self) -> int:
        """Logits that it holds at a time: those of the splits whose points stand side by side."""
        return find_logits(self.settings).n * find_logits(self.settings).classes

    @property
    def row(self) -> str:
        """The calibrator's name."""
        return self.units[0].calibrator

    def __str__(self) -> str:
        return f"{self.units[0].benchmark} {self.units[0].calibrator}, all splits"

    def make(self, device: str, progress: Callable[..., None]) -> tuple[Save, dict[str, Any]]:
        """The record; there are no arrays."""
        return partial(save_npz, arrays={}), computed(self)


def key_of(scores: Sequence[str], code: str) -> str:
    """What the record is made of: the keys of the splits' scores, and the code."""
    return sha256_of_json({"scores": list(scores), "repetitions": REPETITIONS, "code": code})


def computed(task: AcrossSplits) -> dict[str, Any]:
    """The record: `worst` by metric, and `groups` by name with their own rows and intervals."""
    settings = task.settings
    logits = find_logits(settings)
    groups = read_npz(logits.path, mapped=("logits",)).get("groups", np.empty(0, dtype=str))
    tested = [indices_of(settings, logits.n, unit.split)[1] for unit in task.units]
    names = large_enough(groups, tested) if len(groups) else []
    together = splits_together(logits.n * logits.classes, len(task.units))
    pooled: list[HeldOut] = []
    parts: dict[str, list[Scored]] = {name: [] for name in names}
    for unit in task.units[: len(task.units) if names else together]:
        test = held_out(unit, "cpu")
        for name, scores in parts.items():
            own = test.where(groups[test.points] == name)
            scores.append(scored_split(settings, unit.split, own))
        if len(pooled) < together:
            pooled.append(test)
    classes = class_names_of(settings, read_sidecar(settings) or {})
    calibrator, found = task.units[0].calibrator, {}
    for name, scores in parts.items():
        own_points = [one.where(groups[one.points] == name) for one in pooled]
        worst = worst_of(settings, own_points, classes)
        found[name] = {
            "rows": rows_of(calibrator, scores, worst, name),
            "curves": curves_of(calibrator, scores, name),
            "worst": worst,
        }
    content = {"worst": worst_of(settings, pooled, classes), "groups": found}
    record: dict[str, Any] = rounded(content)
    return record


def kept_across_splits(calibrators: Sequence[Sequence[Unit]]) -> dict[str, dict[str, Any]]:
    """The records of each calibrator's units, computed where they are not up to date.

    Raises:
        UnitsFailed: some could not be computed, after all others are done.
    """
    code = code_digest("pipeline.scoring.across_splits")
    tasks = []
    for units in calibrators:
        scores = [str((record_of(unit.scores_path) or {}).get("key")) for unit in units]
        tasks.append(AcrossSplits(tuple(units), key_of(scores, code)))
    run_tasks(f"worst intervals {tasks[0].units[0].benchmark}", tasks)
    return {task.units[0].calibrator: record_of(task.path) or {} for task in tasks}
