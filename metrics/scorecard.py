"""Every number that the paper reports about one forecast, and what of it is noise.

The noise floor: a perfectly calibrated classifier has positive errors on a finite sample. Each
metric is computed again with labels drawn from the forecast itself, for which the forecast is
perfectly calibrated; an observed error inside that range says nothing against calibration. The
order of the predicted utilities does not depend on the labels, so the draws share every sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.binned import Weights
from metrics.floor import floor_of, redrawn_outcomes
from metrics.forecast import Forecast, Outcomes
from metrics.measurement import Measurement, Options
from metrics.registry import Metric, metrics_of
from metrics.utilities.base import UtilityClass
from metrics.validation import InputError, check_labels, check_probabilities

Floats = NDArray[np.float64]
FAMILIES = ("linear", "rank")
"""The sampled families of the eCDFs, by their name in `Measurement`."""


@dataclass(frozen=True)
class Scorecard:
    """The metrics of one forecast.

    metrics: value per key of `metrics.registry.METRICS`.
    noise_floor: per key of a calibration error, "mean" and 95 % quantile "q95" under labels drawn
        from the forecast, and "p_value": how often a calibrated forecast does as badly.
    worst: per utility metric, the utility attaining it and its interval ("utility", "low", "high",
        "sign", "error"); "utility" counts from 0 within the class.
    ecdf: "linear" and "rank": UC of each sampled utility, [M], in the order of the sample; and
        "<family>_floor_mean", "_q05", "_q95": sorted errors under drawn labels, [M].
    draws: "floor_<key>": the metric under each draw of the labels, [R]; equal positions of two
        splits or methods belong together.
    """

    metrics: dict[str, float]
    noise_floor: dict[str, dict[str, float]]
    worst: dict[str, dict[str, float]]
    ecdf: dict[str, Floats] = field(default_factory=dict)
    draws: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sample:
    """Points that a metric is measured on, and their numbers in the whole data set."""

    forecast: Forecast
    labels: Tensor
    points: Tensor


def scorecard(
    probabilities: Any,
    labels: Any,
    *,
    utilities: int = 1500,
    utility_seed: int = 0,
    bins: int = 15,
    class_weights: Weights = "uniform",
    floor_repetitions: int = 400,
    noise_seed: int = 0,
    similarity: Any = None,
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2),
    own: Mapping[str, UtilityClass] | None = None,
    utility_batch: int | None = None,
    points: Any = None,
    rows_sum_to_one: bool = True,
) -> Scorecard:
    """Compute all metrics, their noise floor and the eCDFs of U_lin and U_rank.

    Args:
        probabilities: [n, C]; labels: [n].
        utilities: M, sampled per family; 0 leaves the eCDFs out.
        utility_seed: the sample of utilities, the same for every method and split.
        bins, class_weights: of the binned errors.
        floor_repetitions: label draws R for the noise floors.
        noise_seed: the uniforms behind the draws, the same for every method (paired).
        similarity: [C, C], adds `u_w2v`.
        exponents: grid of γ for `u_dcg`.
        own: your utility classes by key; each adds the largest UC of its class.
        utility_batch: take the utility metrics and the eCDFs as means over disjoint seeded batches
            of this many points or a few more, all points used; None, or where there are fewer than
            two batches: over all points at once.
        points: [n], the number of each point in the whole data set: in all splits a point then
            draws its label from the same uniforms. 0 … n - 1 if not given.
        rows_sum_to_one: False admits rows as one-vs-all isotonic regression leaves them.

    Raises:
        InputError: shapes, ranges or row sums are off, or an option is out of range.
    """
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    y = check_labels(labels, *p.shape).to(p.device)
    if min(utilities, floor_repetitions) < 0:
        raise InputError("utilities, floor_repetitions: expected >= 0")
    options = Options(
        utilities, utility_seed, bins, class_weights, tuple(exponents), similarity, own or {}
    )
    numbers = (
        torch.arange(len(y)) if points is None else check_labels(points, len(y), 1 << 62, "points")
    )
    whole = _Sample(Forecast(p), y, numbers.to(p.device))
    batches = _batches(whole, utility_batch, noise_seed)
    chosen = metrics_of(options)
    observed = [Measurement(s.forecast, s.forecast.outcomes(s.labels), options) for s in batches]
    true = observed[0]
    if batches[0] is not whole:
        true = Measurement(whole.forecast, whole.forecast.outcomes(y), options)
    values = {metric.key: float(_value(metric, true, observed)[0]) for metric in chosen}
    draws, curves = _redrawn(whole, batches, chosen, options, floor_repetitions, noise_seed)
    return Scorecard(
        metrics=values,
        noise_floor={
            metric.key: floor_of(draws[metric.key], values[metric.key])
            for metric in chosen
            if metric.key in draws
        },
        worst={m.key: w for m in chosen if (w := _worst(m, observed)) is not None},
        ecdf=_error_curves(observed, curves) if utilities else {},
        draws={f"floor_{key}": drawn.cpu().numpy() for key, drawn in draws.items()},
    )


def _numbers(points: Any, n: int) -> Tensor:
    return torch.arange(n) if points is None else check_labels(points, n, 1 << 62, "points")


def _batches(whole: _Sample, size: int | None, seed: int) -> list[_Sample]:
    """The samples for the utility metrics: as many random parts as hold `size` points each."""
    if size is not None and size < 1:
        raise InputError(f"utility_batch: {size}, expected at least 1")
    n = len(whole.labels)
    count = n // size if size is not None else 1
    if count <= 1:
        return [whole]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    parts = [part.sort().values for part in order.to(whole.labels.device).tensor_split(count)]
    p = whole.forecast.probabilities
    return [_Sample(Forecast(p[part]), whole.labels[part], whole.points[part]) for part in parts]


def _value(metric: Metric, whole: Measurement, batches: Sequence[Measurement]) -> Tensor:
    """A metric under each outcome, [R]; those of utilities as means over the batches."""
    measured = batches if metric.of_utilities else [whole]
    return torch.stack([metric.value(one) for one in measured]).mean(dim=0)


def _redrawn(
    whole: _Sample,
    batches: Sequence[_Sample],
    chosen: Sequence[Metric],
    options: Options,
    repetitions: int,
    seed: int,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The calibration errors under drawn labels, [R] each, and sorted sampled errors, [R, M]."""
    kept = [metric for metric in chosen if metric.has_floor]
    values: dict[str, list[Tensor]] = {}
    curves: dict[str, list[Tensor]] = {}

    def chunks(sample: _Sample) -> Iterator[Outcomes]:
        return redrawn_outcomes(
            sample.forecast, sample.points, repetitions, seed, len(whole.labels)
        )

    samples = batches if batches[0] is whole else [whole, *batches]
    for outcomes in zip(*map(chunks, samples), strict=True):
        measured = [
            Measurement(s.forecast, o, options) for s, o in zip(samples, outcomes, strict=True)
        ]
        of_batches = measured[-len(batches) :]
        for metric in kept:
            values.setdefault(metric.key, []).append(_value(metric, measured[0], of_batches))
        for family in FAMILIES if options.utilities else ():
            curves.setdefault(family, []).append(_sorted_errors(of_batches, family))
    return (
        {key: torch.cat(parts) for key, parts in values.items()},
        {family: torch.cat(parts) for family, parts in curves.items()},
    )


def _sorted_errors(measured: Sequence[Measurement], family: str) -> Tensor:
    """The sampled users' errors in ascending order, [R, M], mean over batches."""
    ordered = [getattr(one, family).sort(dim=1).values for one in measured]
    return torch.stack(ordered).mean(dim=0)


def _worst(metric: Metric, measured: Sequence[Measurement]) -> dict[str, float] | None:
    """Where a metric of one class is attained, in the batch where it is the largest."""
    utilities = metric.utility_class(measured[0].options)
    if utilities is None:
        return None
    errors = [one.errors(metric.key, utilities)[0] for one in measured]
    first = max(range(len(measured)), key=lambda k: float(errors[k].max()))
    one = measured[first]
    index, interval = utilities.worst_of(one.forecast, one.outcomes, errors[first])
    return {"utility": index, **interval._asdict()}


def _error_curves(
    observed: Sequence[Measurement], drawn: Mapping[str, Tensor]
) -> dict[str, Floats]:
    curves: dict[str, Floats] = {}
    for family in FAMILIES:
        errors = torch.stack([getattr(one, family)[0] for one in observed]).mean(dim=0)
        curves[family] = errors.cpu().numpy()
        if family in drawn:
            floor = drawn[family].cpu().numpy()
            curves[f"{family}_floor_mean"] = floor.mean(axis=0)
            curves[f"{family}_floor_q05"] = np.quantile(floor, 0.05, axis=0)
            curves[f"{family}_floor_q95"] = np.quantile(floor, 0.95, axis=0)
    return curves
