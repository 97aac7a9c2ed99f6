"""Every number that the paper reports about one forecast, and what of it is noise.

The noise floor: a perfectly calibrated classifier has positive errors on a finite sample. Each
metric is computed again with labels drawn from the forecast itself, for which the forecast is
perfectly calibrated; an observed error inside that range says nothing against calibration. The
order of the predicted utilities does not depend on the labels, so the draws share every sort.

Beside it stand what the points allow to say of all points: a certificate for the true UC
(metrics.certificate), and the metric under resampled points (metrics.bootstrap).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.binned import Weights
from metrics.bootstrap import LARGEST
from metrics.certificate import (
    CalibrationInterval,
    Evidence,
    evidence_of,
    joined,
    normal_multipliers,
)
from metrics.floor import NoiseFloor, point_numbers
from metrics.forecast import Forecast
from metrics.measurement import FAMILIES, Measurement, Options
from metrics.registry import Metric, metrics_of
from metrics.samples import Measured, Sample, Samples
from metrics.scores import zero_likelihoods
from metrics.utilities.base import UtilityClass
from metrics.validation import InputError, check_labels, check_probabilities

Floats = NDArray[np.float64]
ALL_CLASSES = "all"
"""The certificate of all utility classes together but one's own, whose unit may be another."""


@dataclass(frozen=True)
class Scorecard:
    """The metrics of one forecast.

    metrics: value per key of `metrics.registry.METRICS`.
    noise_floor: per key of a calibration error, "mean" and 95 % quantile "q95" under labels drawn
        from the forecast, and "p_value": how often a calibrated forecast does as badly; empty
        without redrawn labels.
    worst: per utility metric, the utility attaining it and its interval ("utility", "low", "high",
        "sign", "error"); "utility" counts from 0 within the class.
    ecdf: "linear" and "rank": UC of each sampled utility, [M], in the order of the sample; and
        "<family>_floor_mean", "_q05", "_q95": sorted errors under drawn labels, interpolated from
        those of `floor_utilities` utilities, [M].
    draws: "floor_<key>": the metric under each draw of the labels, [R]; "bootstrap_<key>": under
        resampled points, [B]. Equal positions of two splits or methods belong together.
    certificates: per utility metric bounds on its true value, and those of all classes together
        under "all", own ones aside; none without redrawn labels, and none where utility metrics
        are means over batches.
    zero_likelihood: points whose label had probability 0: the NLL without its floor is infinite.
    """

    metrics: dict[str, float]
    noise_floor: dict[str, dict[str, float]]
    worst: dict[str, dict[str, float]]
    ecdf: dict[str, Floats] = field(default_factory=dict)
    draws: dict[str, Floats] = field(default_factory=dict)
    certificates: dict[str, CalibrationInterval] = field(default_factory=dict)
    zero_likelihood: int = 0


def scorecard(
    probabilities: Any,
    labels: Any,
    *,
    utilities: int = 1500,
    floor_utilities: int = 1000,
    utility_seed: int = 0,
    bins: int = 15,
    class_weights: Weights = "uniform",
    floor_repetitions: int = 400,
    bootstrap_repetitions: int = 0,
    noise_seed: int = 0,
    similarity: Any = None,
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2),
    own: Mapping[str, UtilityClass] | None = None,
    utility_batch: int | None = None,
    points: Any = None,
    population: int | None = None,
    confidence: float = 0.95,
    rows_sum_to_one: bool = True,
) -> Scorecard:
    """Compute all metrics, their noise floor and the eCDFs of U_lin and U_rank.

    Args:
        probabilities: [n, C]; labels: [n].
        utilities: M, sampled per family; 0 leaves the eCDFs out.
        floor_utilities: so many of them, the first, are measured under drawn labels and resampled
            points; floors and intervals of their quantiles come from these.
        utility_seed: the sample of utilities, the same for every method and split.
        bins, class_weights: of the binned errors.
        floor_repetitions: label draws R for the noise floors.
        bootstrap_repetitions: resamplings B of the points; none beyond 50,000 points.
        noise_seed: the uniforms behind the draws, the same for every method (paired).
        similarity: [C, C], adds `u_w2v`.
        exponents: grid of γ for `u_dcg`.
        own: your utility classes by key; each adds the largest UC of its class.
        utility_batch: take the utility metrics and the eCDFs as means over disjoint seeded batches
            of this many points or a few more, all points used; None, or where there are fewer than
            two batches: over all points at once.
        points: [n], the number of each point in the whole data set: in all splits a point then
            draws its label from the same uniforms. 0 … n - 1 if not given.
        population: points of the whole data set, which the bootstrap resamples; n if not given.
        confidence: of the certificates.
        rows_sum_to_one: False admits rows as one-vs-all isotonic regression leaves them. Labels
            cannot be drawn from such rows, so there are no noise floor and no certificates then.

    Raises:
        InputError: shapes, ranges or row sums are off, or an option is out of range.
    """
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    y = check_labels(labels, *p.shape).to(p.device)
    if min(utilities, floor_repetitions, bootstrap_repetitions) < 0:
        raise InputError("utilities, floor_repetitions, bootstrap_repetitions: expected >= 0")
    if floor_utilities < 1:
        raise InputError(f"floor_utilities: {floor_utilities}, expected at least 1")
    options = Options(
        utilities=utilities,
        floor_utilities=floor_utilities,
        utility_seed=utility_seed,
        bins=bins,
        class_weights=class_weights,
        exponents=tuple(exponents),
        similarity=similarity,
        own=own or {},
    )
    whole = Sample(Forecast(p), y, point_numbers(points, len(y)).to(p.device))
    samples = Samples.of(whole, options, utility_batch, noise_seed)
    population = len(y) if population is None else population
    if population > LARGEST:
        bootstrap_repetitions = 0
    if not rows_sum_to_one:
        floor_repetitions = 0
    observed, metrics = samples.observed(), metrics_of(options)
    with_floor = [metric for metric in metrics if metric.has_floor]
    floors, curves = _draws(samples.redrawn(floor_repetitions, noise_seed), with_floor, options)
    resampled = samples.resampled(bootstrap_repetitions, population, noise_seed)
    moved, _ = _draws(resampled, metrics, options)
    values = {metric.key: float(observed.value(metric)[0]) for metric in metrics}
    return Scorecard(
        metrics=values,
        noise_floor={key: NoiseFloor.of(d, values[key])._asdict() for key, d in floors.items()},
        worst={m.key: w for m in metrics if (w := _worst(m, observed)) is not None},
        ecdf=_error_curves(observed, curves) if utilities else {},
        draws={f"floor_{key}": draws for key, draws in floors.items()}
        | {f"bootstrap_{key}": draws for key, draws in moved.items()},
        certificates=_certificates(observed.whole, metrics, floors, confidence, noise_seed)
        if floors and not samples.in_batches
        else {},
        zero_likelihood=int(zero_likelihoods(whole.forecast, observed.whole.outcomes)[0]),
    )


def _draws(
    measured: Iterable[Measured], metrics: Sequence[Metric], options: Options
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The metrics under each outcome, [R] each, and the sorted errors of the samples, [R, M]."""
    values: dict[str, list[Tensor]] = {}
    curves: dict[str, list[Tensor]] = {}
    for some in measured:
        for metric in metrics:
            values.setdefault(metric.key, []).append(some.value(metric))
        for family in FAMILIES if options.utilities else ():
            curves.setdefault(family, []).append(some.sorted_errors(family))
    return _joined(values), _joined(curves)


def _joined(parts: Mapping[str, Sequence[Tensor]]) -> dict[str, Floats]:
    return {key: torch.cat(list(some)).cpu().numpy() for key, some in parts.items()}


def _worst(metric: Metric, observed: Measured) -> dict[str, float] | None:
    """Where a metric of one class is attained, in the batch where it is the largest."""
    utilities = metric.utility_class(observed.whole.options)
    if utilities is None:
        return None
    errors = [one.errors(metric.key, utilities)[0] for one in observed.batches]
    first = max(range(len(errors)), key=lambda k: float(errors[k].max()))
    one = observed.batches[first]
    index, interval = utilities.worst_of(one.forecast, one.outcomes, errors[first])
    return {"utility": index, **interval._asdict()}


def _certificates(
    observed: Measurement,
    metrics: Sequence[Metric],
    floors: Mapping[str, Floats],
    confidence: float,
    seed: int,
) -> dict[str, CalibrationInterval]:
    """Bounds on the true UC of each class, and of all but own ones together."""
    found: dict[str, Evidence] = {}
    forecast, outcomes = observed.forecast, observed.outcomes
    multipliers = normal_multipliers(forecast, seed)
    for metric in metrics:
        utilities = metric.utility_class(observed.options)
        if utilities is not None:
            redrawn = torch.from_numpy(floors[metric.key])
            found[metric.key] = evidence_of(
                utilities, forecast, outcomes, redrawn, confidence, multipliers
            )
    together = joined([one for key, one in found.items() if key not in observed.options.own])
    return {
        key: evidence.interval(confidence)
        for key, evidence in {**found, ALL_CLASSES: together}.items()
    }


def _error_curves(observed: Measured, drawn: Mapping[str, Floats]) -> dict[str, Floats]:
    curves: dict[str, Floats] = {}
    for family in FAMILIES:
        errors = torch.stack([getattr(one, family)[0] for one in observed.batches]).mean(dim=0)
        curves[family] = errors.cpu().numpy()
        if family in drawn:
            lines = {
                "mean": drawn[family].mean(axis=0),
                "q05": np.quantile(drawn[family], 0.05, axis=0),
                "q95": np.quantile(drawn[family], 0.95, axis=0),
            }
            for name, line in lines.items():
                curves[f"{family}_floor_{name}"] = _stretched(line, errors.numel())
    return curves


def _stretched(ordered: Floats, count: int) -> Floats:
    """`ordered` values as quantiles, read off at `count` levels from 0 to 1."""
    return np.interp(np.linspace(0, 1, count), np.linspace(0, 1, len(ordered)), ordered)
