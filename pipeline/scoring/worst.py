"""Where a calibrator's error is largest, over all splits; unit: benchmark x calibrator.

The evaluation of a unit sees one split. This module takes the test points of all splits, or of the
first splits if there are too many points. For each class of utilities it finds the utility with the
largest mean error, its worst interval and its diagram.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.diagram import Predictions, UtilityDiagram, predictions_of, utility_diagram
from metrics.forecast import Forecast
from metrics.measurement import Options
from metrics.registry import metrics_of
from metrics.validation import InputError
from pipeline.harness.settings import Settings
from pipeline.scoring.held_out import HeldOut, options_of
from pipeline.sources.class_names import class_names
from pipeline.sources.own_utilities import name_of

REPETITIONS = 100
"""Redrawn label vectors behind a diagram's noise band."""
LARGEST = 60_000_000
"""Probabilities held at a time. Larger benchmarks use only their first splits, at least one."""
SMALLEST_GROUP = 20
"""A group is scored if it has this many test points in every split."""
DIGITS = 4
"""Significant digits of a diagram's numbers."""


def splits_together(size: int, splits: int) -> int:
    """The number of `splits` whose test points fit into memory; `size`: logits, n x C."""
    return min(splits, max(1, LARGEST // max(1, size)))


def worst_of(
    settings: Settings, splits: Sequence[HeldOut], names: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """For each utility metric the worst utility over `splits`, its interval and its diagram.

    Args:
        settings: those of any of the splits, for the options of the evaluation.
        names: those of the classes, if they are known.
    """
    names_of_options = {field.name for field in fields(Options)}  # those of the noise are others
    given = options_of(settings)
    options = Options(**{key: given[key] for key in given if key in names_of_options})
    forecasts = [Forecast(test.probabilities) for test in splits]  # sorted once for all metrics
    drawn = _redrawn(forecasts, splits)
    own = settings.evaluation.own
    by_metric = {}
    for metric in metrics_of(options):
        utilities = metric.utility_class(options)
        if utilities is not None:
            record = _worst(utilities, forecasts, splits, drawn)
            index, entry = record["utility"], own.get(metric.key)
            name = utility_name(metric.key, index, names, options.exponents)
            if entry is not None:
                name = name_of(entry, index)
            by_metric[metric.key] = {"name": name, **record}
    return by_metric


def _redrawn(forecasts: Sequence[Forecast], splits: Sequence[HeldOut]) -> list[Tensor]:
    """Labels drawn from the probabilities of each split, int64 [R, points] each.

    A point has the same uniform numbers in all splits, and points of a cluster share them. For
    rows that do not sum to one R is 0, because labels cannot be drawn from them.
    """
    repetitions = REPETITIONS if splits[0].rows_sum_to_one else 0
    random = np.random.default_rng(0)
    uniforms = [np.empty((repetitions, len(test.points))) for test in splits]
    for repetition in range(repetitions):
        of_unit = random.random(splits[0].population)
        for test, of_test in zip(splits, uniforms, strict=True):
            numbers = test.points if test.clusters is None else test.clusters
            of_test[repetition] = of_unit[numbers]
    return [
        forecast.redraw(torch.from_numpy(of_test)).labels
        for forecast, of_test in zip(forecasts, uniforms, strict=True)
    ]


def _worst(
    utilities: Any,
    forecasts: Sequence[Forecast],
    splits: Sequence[HeldOut],
    drawn: Sequence[Tensor],
) -> dict[str, Any]:
    outcomes = [
        forecast.outcomes(
            test.labels, None if test.weights is None else torch.from_numpy(test.weights)
        )
        for forecast, test in zip(forecasts, splits, strict=True)
    ]
    errors = [
        utilities.errors(forecast, outcome)[0].numpy()
        for forecast, outcome in zip(forecasts, outcomes, strict=True)
    ]
    index = int(np.mean(errors, axis=0).argmax())
    parts = [
        predictions_of(utilities, forecast, outcome, index, labels)
        for forecast, outcome, labels in zip(forecasts, outcomes, drawn, strict=True)
    ]
    diagram = utility_diagram(Predictions.pooled(parts), points=81)
    return {
        "utility": index,
        "low": diagram.worst.low,
        "high": diagram.worst.high,
        "share": diagram.share,
        "gap": diagram.gap,
        "diagram": diagram_json(diagram),
    }


def diagram_json(diagram: UtilityDiagram) -> dict[str, Any]:
    """The curve and the bins as plain rounded numbers; null if there is no noise band."""
    bins = diagram.bins
    columns = (bins.predicted, bins.realized, bins.low, bins.high)
    return {
        "at": _rounded(diagram.predicted),
        "curve": _rounded(diagram.difference),
        "low": _rounded(diagram.low),
        "high": _rounded(diagram.high),
        "bins": [_rounded(row) for row in zip(*columns, strict=True)],
    }


def _rounded(values: Any) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values]


def utility_name(metric: str, index: int, class_names: Sequence[str], exponents: Any) -> str:
    """What a person calls utility `index` of the class behind a metric."""
    if metric == "u_cwe":
        return f"class {class_names[index] if index < len(class_names) else index}"
    if metric == "u_topk":
        return "most probable class" if index == 0 else f"top {index + 1}"
    if metric == "u_tce":
        return "most probable class"
    if metric == "u_dcg":
        return f"discount exponent {exponents[index]:g}"
    return f"user {index + 1}"


def class_names_of(settings: Settings, logits: Mapping[str, Any]) -> Sequence[str]:
    """Names of the classes, from the logits' record or the data set; empty if unknown."""
    names = logits.get("class_names") or settings.benchmark.source.get("dataset")
    if not names:
        return ()
    try:
        return class_names(names)
    except InputError:
        return ()
