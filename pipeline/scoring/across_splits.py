"""Results of one calibrator over all splits of a benchmark: worst intervals, groups of points.

They are computed right after the evaluation, which sees one split. `worst.npz` then holds, for each
utility class, the utility with the largest mean error over the test points of all splits, its worst
interval and its diagram.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from utility_calibration.metrics.acting import largest_gain
from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.cross_fitted import cross_fitted_gain
from utility_calibration.metrics.diagram import (
    Predictions,
    predictions_of,
    redrawn_utilities,
    utility_diagram,
)
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.measurement import Options
from utility_calibration.metrics.registry import metrics_of
from utility_calibration.metrics.uc import first_largest

from ..harness.artifacts import save_npz
from ..harness.cache import Record, Save
from ..harness.settings import Settings
from ..harness.task import Progress
from ..harness.units import Unit
from .class_names import class_names
from .families import p_values_together
from .files import rounded
from .held_out import HeldOut, held_out, options_of, scored
from .points import SMALLEST_GROUP, CachedLogits, find_logits, indices_of, splits_together
from .score_rows import Scored, curves_of, draws_of, rows_of

REPETITIONS = 100  # redrawn label vectors behind a diagram's noise band
DRAWN_TOGETHER = 1 << 20  # random numbers of a diagram's labels that are held at a time: 8 MB
DENSITY_BINS = 20
DIGITS = 4  # significant digits of a diagram's numbers


def across_splits(units: Sequence[Unit], progress: Progress) -> tuple[Save, Record]:
    """The record: `worst` by metric, and for each of `groups` its rows, curves and intervals."""
    settings = units[0].settings
    logits = find_logits(settings)
    groups, names = logits.arrays().get("groups"), _large_groups(units, logits)
    together = splits_together(logits.size, len(units))
    pooled: dict[str, list[HeldOut]] = {name: [] for name in ("", *names)}  # "": all points
    parts: dict[str, list[Scored]] = {name: [] for name in names}
    # Groups are scored in every split, worst intervals are of those that memory holds together.
    n_splits = len(units) if names else together
    for unit in units[:n_splits]:
        test = held_out(unit)
        for name, tests in pooled.items():
            chosen = test
            if groups is not None and name:
                chosen = test.where(groups[test.points] == name)
            if len(tests) < together:
                tests.append(chosen)
            if name:
                parts[name].append(Scored(unit.split, *scored(settings, chosen)))
    classes = _class_names(settings, logits.details)
    worst = {name: worst_of(settings, tests, classes) for name, tests in pooled.items()}
    p_values = p_values_together(parts, settings.evaluation.own or {})
    calibrator = units[0].calibrator
    by_group = {}
    for name, scores in parts.items():
        by_group[name] = {
            "rows": rows_of(calibrator, scores, worst[name], name),
            "curves": curves_of(calibrator, scores, name),
            "draws": draws_of(scores),
            "worst": worst[name],
            "together": p_values.get(name, {}),
        }
    return partial(save_npz, arrays={}), rounded({"worst": worst[""], "groups": by_group})


def _large_groups(units: Sequence[Unit], logits: CachedLogits) -> list[str]:
    """The groups that have SMALLEST_GROUP test points, whose weight is not 0, in every split."""
    groups = logits.arrays().get("groups", np.empty(0, dtype=str))
    counts = logits.arrays().get("weights", np.ones(len(groups))) > 0
    tested = [indices_of(unit.settings, logits, unit.split)[1] for unit in units]
    large = []
    for name in np.unique(groups).tolist():
        is_in_group = (groups == name) & counts
        if min(is_in_group[test].sum() for test in tested) >= SMALLEST_GROUP:
            large.append(name)
    return large


def worst_of(
    settings: Settings, splits: Sequence[HeldOut], names: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """For each utility metric the worst utility over `splits`; `names` of the classes, if known.

    The noise band of its diagram is of labels drawn from the forecast. A point has the same uniform
    numbers in all splits, and points of a cluster share them.
    """
    chosen = options_of(settings)
    options = Options(**{f.name: chosen[f.name] for f in fields(Options) if f.name in chosen})
    # Labels cannot be drawn from rows that do not sum to one.
    repetitions = REPETITIONS if splits[0].rows_sum_to_one else 0
    parts, drawn, by_metric = [], [], {}
    for test in splits:
        # Ranked once for all metrics. Beside the ranks, what each metric makes of the forecasts of
        # all splits would take many times their memory.
        forecast = Forecast(test.probabilities, in_parts=True)
        drawn.append((forecast, _redrawn_labels(test, forecast, repetitions)))
        parts.append((forecast, forecast.outcomes(test.labels, test.weights)))
    clusters = np.concatenate(
        [test.points if test.clusters is None else test.clusters for test in splits]
    )
    for metric in metrics_of(options):
        utilities = metric.utilities(options)
        if utilities is None:
            continue
        errors = [utilities.errors(*part)[0] for part in parts]
        index = first_largest(np.stack(errors).mean(axis=0))
        pooled = Predictions.pooled([predictions_of(utilities, *part, index) for part in parts])
        redrawn = redrawn_utilities(utilities, index, drawn)
        diagram = utility_diagram(pooled, redrawn, points=81)
        gain = largest_gain(pooled.predicted, pooled.realized, pooled.weights)
        fresh = cross_fitted_gain(utilities, parts, clusters)
        called = utilities.names
        curves = dict(zip(("at", "curve", "low", "high"), diagram.running, strict=True))
        curves["bins"] = np.column_stack(diagram.bins)
        curves["density"] = _density(pooled)
        by_metric[metric.key] = {
            "name": called[index] if called else _name(metric.key, index, names, options),
            "utility": index,
            "low": diagram.worst.low,
            "high": diagram.worst.high,
            "share": diagram.share,
            "gap": diagram.gap,
            **gain,
            "fresh_gain": fresh.gain,
            "fresh_half_width": fresh.half_width,
            "diagram": {key: rounded(values.tolist(), DIGITS) for key, values in curves.items()},
        }
    return by_metric


def _redrawn_labels(test: HeldOut, forecast: Forecast, repetitions: int) -> Array:
    """Labels drawn from the forecast, [R, n]: as bytes if these hold them, as they are kept long.

    The random numbers of all draws at once would take most of a run's memory.
    """
    kind: Any = np.uint8 if forecast.classes <= 256 else forecast.short_type
    labels: Array = np.empty((forecast.n, repetitions), kind).T
    units = test.points if test.clusters is None else test.clusters
    random = np.random.default_rng(0)
    for start, stop in row_blocks(repetitions, forecast.n, DRAWN_TOGETHER):
        numbers = [random.random(test.population)[units] for _ in range(start, stop)]
        labels[start:stop] = forecast.redraw(np.stack(numbers)).labels
    return labels


def _density(predictions: Predictions) -> np.ndarray[Any, Any]:
    """How many points lie where: for bins of equal width the left edge, the right one, the share.

    [bins, 3]; the shares sum to 1.
    """
    weights, edges = np.histogram(predictions.predicted, DENSITY_BINS, weights=predictions.weights)
    return np.column_stack([edges[:-1], edges[1:], weights / weights.sum()])


def _name(metric: str, index: int, class_names: Sequence[str], options: Options) -> str:
    """What a person calls utility `index` of the class behind a metric."""
    if metric == "u_cwe":
        return f"class {class_names[index] if index < len(class_names) else index}"
    if metric in ("u_tce", "u_topk"):
        return f"top {index + 1}" if index else "most probable class"
    is_dcg = metric == "u_dcg"
    return f"discount exponent {options.exponents[index]:g}" if is_dcg else f"user {index + 1}"


def _class_names(settings: Settings, logits: Mapping[str, Any]) -> Sequence[str]:
    """Names of the classes, from the logits' record or the data set; empty if unknown."""
    names = logits.get("class_names") or settings.benchmark.source.get("dataset")
    try:
        return class_names(names) if names else ()
    except InputError:
        return ()
