"""Results of one calibrator over all splits of a benchmark: worst intervals, groups of points.

Unit: benchmark x calibrator. It needs logits and fitted calibrators, so it is computed right after
the evaluation, which sees one split. It is stored in `worst.npz`, in the folder of the splits'
scores. For each class of utilities it has the utility with the largest mean error over the test
points of all splits, its worst interval and its diagram.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.diagram import Predictions, UtilityDiagram, predictions_of, utility_diagram
from metrics.forecast import Forecast, Outcomes
from metrics.measurement import Options
from metrics.registry import metrics_of
from metrics.validation import InputError
from pipeline.harness.artifacts import save_npz, sha256_of_json
from pipeline.harness.cache import Record, Save, record_of
from pipeline.harness.code import code_digest
from pipeline.harness.parallel import Progress, Task, run_tasks
from pipeline.harness.settings import Settings
from pipeline.harness.units import Unit
from pipeline.own.utilities import name_of
from pipeline.scoring.files import rounded
from pipeline.scoring.held_out import HeldOut, entries_of, held_out, options_of, scored
from pipeline.scoring.points import CachedLogits, find_logits, indices_of
from pipeline.scoring.tidy import Scored, curves_of, draws_of, rows_of
from pipeline.sources.class_names import class_names

REPETITIONS = 100
"""Redrawn label vectors behind a diagram's noise band."""
LARGEST = 60_000_000
"""Probabilities held at a time. Larger benchmarks use only their first splits, at least one."""
SMALLEST_GROUP = 20
"""A group is scored if it has this many test points in every split."""
DIGITS = 4
"""Significant digits of a diagram's numbers."""


def kept_across_splits(calibrators: Sequence[Sequence[Unit]]) -> dict[str, Record]:
    """The records of each calibrator's units, computed where they are not up to date."""
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
    """The record: `worst` by metric, and for each of `groups` its rows, curves and intervals."""
    settings, logits = units[0].settings, find_logits(units[0].settings)
    groups = logits.arrays().get("groups", np.empty(0, dtype=str))
    names = _large_groups(units, logits)
    together = splits_together(logits.size, len(units))
    pooled: list[HeldOut] = []
    parts: dict[str, list[Scored]] = {name: [] for name in names}
    for unit in units[: len(units) if names else together]:
        test = held_out(unit, "cpu")
        for name, scores in parts.items():
            of_group = test.where(groups[test.points] == name)
            card = scored(settings, of_group)
            record = {**entries_of(card), "n_test": len(of_group.labels)}
            scores.append(Scored(unit.split, record, card.ecdf | card.draws))
        if len(pooled) < together:
            pooled.append(test)
    classes = _class_names(settings, logits.details)
    by_group = {}
    for name, scores in parts.items():
        own_points = [test.where(groups[test.points] == name) for test in pooled]
        worst = worst_of(settings, own_points, classes)
        by_group[name] = {
            "rows": rows_of(units[0].calibrator, scores, worst, name),
            "curves": curves_of(units[0].calibrator, scores, name),
            "draws": draws_of(scores),
            "worst": worst,
        }
    content = {"worst": worst_of(settings, pooled, classes), "groups": by_group}
    return partial(save_npz, arrays={}), rounded(content)


def _large_groups(units: Sequence[Unit], logits: CachedLogits) -> list[str]:
    """The groups that have SMALLEST_GROUP test points, whose weight is not 0, in every split."""
    groups = logits.arrays().get("groups", np.empty(0, dtype=str))
    counted = logits.arrays().get("weights", np.ones(len(groups))) > 0
    tested = [indices_of(unit.settings, logits, unit.split)[1] for unit in units]
    return [
        name
        for name in np.unique(groups).tolist()
        if min(((groups == name) & counted)[test].sum() for test in tested) >= SMALLEST_GROUP
    ]


def splits_together(size: int, splits: int) -> int:
    """The number of `splits` whose test points fit into memory; `size`: logits, n x C."""
    return min(splits, max(1, LARGEST // max(1, size)))


def worst_of(
    settings: Settings, splits: Sequence[HeldOut], names: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """For each utility metric the worst utility over `splits`, its interval and its diagram.

    `names`: those of the classes, if they are known.
    """
    given, own = options_of(settings), settings.evaluation.own
    options = Options(**{f.name: given[f.name] for f in fields(Options) if f.name in given})
    parts = _prepared(splits)
    by_metric = {}
    for metric in metrics_of(options):
        utilities = metric.utilities(options)
        if utilities is not None:
            record = _worst(utilities, parts)
            index, entry = record["utility"], own.get(metric.key)
            name = _utility_name(metric.key, index, names, options.exponents)
            by_metric[metric.key] = {"name": name if entry is None else name_of(entry, index)}
            by_metric[metric.key] |= record
    return by_metric


def _prepared(splits: Sequence[HeldOut]) -> list[tuple[Forecast, Outcomes, Tensor]]:
    """Per split the forecast, the outcomes, and labels drawn from the forecast, int64 [R, points].

    A point has the same uniform numbers in all splits, and points of a cluster share them. For
    rows that do not sum to one R is 0, because labels cannot be drawn from them.
    """
    repetitions = REPETITIONS if splits[0].rows_sum_to_one else 0
    random = np.random.default_rng(0)
    of_units = [random.random(splits[0].population) for _ in range(repetitions)]
    uniforms = np.reshape(of_units, (repetitions, splits[0].population))
    parts = []
    for test in splits:
        forecast = Forecast(test.probabilities)  # sorted once for all metrics
        weights = None if test.weights is None else torch.from_numpy(test.weights)
        of_points = uniforms[:, test.points if test.clusters is None else test.clusters]
        drawn = forecast.redraw(torch.from_numpy(of_points)).labels
        parts.append((forecast, forecast.outcomes(test.labels, weights), drawn))
    return parts


def _worst(utilities: Any, parts: Sequence[tuple[Forecast, Outcomes, Tensor]]) -> dict[str, Any]:
    errors = [utilities.errors(forecast, outcomes)[0].numpy() for forecast, outcomes, _ in parts]
    index = int(np.mean(errors, axis=0).argmax())
    pooled = Predictions.pooled([predictions_of(utilities, f, o, index, d) for f, o, d in parts])
    diagram = utility_diagram(pooled, points=81)
    return {
        "utility": index,
        "low": diagram.worst.low,
        "high": diagram.worst.high,
        "share": diagram.share,
        "gap": diagram.gap,
        "diagram": _drawn(diagram),
    }


def _drawn(diagram: UtilityDiagram) -> dict[str, Any]:
    """The curve and the bins as plain rounded numbers; None where there is no noise band."""
    bins = diagram.bins
    content = {
        "at": diagram.predicted,
        "curve": diagram.difference,
        "low": diagram.low,
        "high": diagram.high,
        "bins": np.column_stack([bins.predicted, bins.realized, bins.low, bins.high]),
    }
    return {name: rounded(values.tolist(), DIGITS) for name, values in content.items()}


def _utility_name(metric: str, index: int, class_names: Sequence[str], exponents: Any) -> str:
    """What a person calls utility `index` of the class behind a metric."""
    if metric == "u_cwe":
        return f"class {class_names[index] if index < len(class_names) else index}"
    if metric == "u_tce" or (metric == "u_topk" and index == 0):
        return "most probable class"
    if metric == "u_topk":
        return f"top {index + 1}"
    return f"discount exponent {exponents[index]:g}" if metric == "u_dcg" else f"user {index + 1}"


def _class_names(settings: Settings, logits: Mapping[str, Any]) -> Sequence[str]:
    """Names of the classes, from the logits' record or the data set; empty if unknown."""
    names = logits.get("class_names") or settings.benchmark.source.get("dataset")
    try:
        return class_names(names) if names else ()
    except InputError:
        return ()
