"""Every number that the paper reports about one forecast, and how much of it is noise.

The noise floor: a perfectly calibrated classifier has positive errors on a finite sample. Each
metric is computed again with labels drawn from the forecast itself, for which the forecast is
perfectly calibrated; an observed error inside that range says nothing against calibration. The
order of the predicted utilities does not depend on the labels, so the draws share every sort.

Beside it the scorecard has what the points say of all points: a certificate for the true UC
(`metrics.certificate`), and the metric under resampled points (`metrics.resampling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.certificate import (
    CalibrationInterval,
    Evidence,
    evidence_of,
    joined,
    normal_multipliers,
)
from metrics.forecast import Forecast
from metrics.measurement import (
    FAMILIES,
    Measured,
    Measurement,
    Noise,
    Options,
    Sample,
    Samples,
)
from metrics.registry import Metric, metrics_of
from metrics.report import report_of
from metrics.resampling import NoiseFloor, point_numbers
from metrics.scores import zero_likelihoods
from metrics.validation import check_labels, check_probabilities

Floats = NDArray[np.float64]
ALL_CLASSES = "all"
"""The certificate of all utility classes together but one's own, whose unit may be another."""


@dataclass(frozen=True)
class Scorecard:
    """The metrics of one forecast.

    metrics: value per key of `metrics.METRICS`.
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

    def report(self) -> None:
        """Print the verdict: per purpose the error, what chance alone shows, and a bound."""
        print(report_of(self))


def scorecard(
    probabilities: Any,
    labels: Any,
    options: Options | None = None,
    noise: Noise | None = None,
    *,
    rows_sum_to_one: bool = True,
    **changes: Any,
) -> Scorecard:
    """Compute all metrics, their noise floor and the eCDFs of U_lin and U_rank.

    Args:
        probabilities: [n, C]; labels: [n].
        options: what is measured; `Options()` if not given.
        noise: how its noise is estimated; `Noise()` if not given.
        rows_sum_to_one: False admits rows as one-vs-all isotonic regression leaves them. Labels
            cannot be drawn from such rows, so there are no noise floor and no certificates then.
        **changes: fields of `options` and of `noise` by name:
            `scorecard(p, y, utilities=0, bootstrap_repetitions=200)`.

    Raises:
        InputError: shapes, ranges or row sums are off, or an option is out of range.
    """
    options, noise = _changed(options or Options(), noise or Noise(), changes)
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    y = check_labels(labels, *p.shape).to(p.device)
    whole = Sample(Forecast(p), y, point_numbers(noise.points, len(y)).to(p.device))
    samples = Samples.of(whole, options, noise.noise_seed)
    observed, metrics = samples.observed(), metrics_of(options)
    values = {metric.key: float(_value(observed, metric)[0]) for metric in metrics}
    floors, curves = _draws(
        samples.redrawn(noise) if rows_sum_to_one else (),
        [metric for metric in metrics if metric.has_floor],
        options,
    )
    moved, _ = _draws(samples.resampled(noise), metrics, options)
    return Scorecard(
        metrics=values,
        noise_floor={key: NoiseFloor.of(d, values[key])._asdict() for key, d in floors.items()},
        worst={m.key: w for m in metrics if (w := _worst(m, observed)) is not None},
        ecdf=_error_curves(observed, curves) if options.utilities else {},
        draws={f"floor_{key}": draws for key, draws in floors.items()}
        | {f"bootstrap_{key}": draws for key, draws in moved.items()},
        certificates=_certificates(observed.whole, metrics, floors, noise)
        if floors and not samples.in_batches
        else {},
        zero_likelihood=int(zero_likelihoods(whole.forecast, observed.whole.outcomes)[0]),
    )


def _changed(options: Options, noise: Noise, changes: dict[str, Any]) -> tuple[Options, Noise]:
    known = {field.name for field in fields(Options)}
    of_options = {name: value for name, value in changes.items() if name in known}
    others = {name: value for name, value in changes.items() if name not in known}
    return replace(options, **of_options), replace(noise, **others)


def _value(measured: Measured, metric: Metric) -> Tensor:
    """A metric under each outcome, [R]; those of utilities as means over the batches."""
    over = measured.batches if metric.of_utilities else [measured.whole]
    return torch.stack([metric.value(measurement) for measurement in over]).mean(dim=0)


def _draws(
    measured: Iterable[Measured], metrics: Sequence[Metric], options: Options
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The metrics under each outcome, [R] each, and the sorted errors of the samples, [R, M]."""
    values: dict[str, list[Tensor]] = {}
    curves: dict[str, list[Tensor]] = {}
    for outcomes in measured:
        for metric in metrics:
            values.setdefault(metric.key, []).append(_value(outcomes, metric))
        for family in FAMILIES if options.utilities else ():
            curves.setdefault(family, []).append(outcomes.sorted_errors(family))
    return _joined(values), _joined(curves)


def _joined(parts: Mapping[str, Sequence[Tensor]]) -> dict[str, Floats]:
    return {key: torch.cat(list(tensors)).cpu().numpy() for key, tensors in parts.items()}


def _worst(metric: Metric, observed: Measured) -> dict[str, float] | None:
    """Where a metric of one class is attained, in the batch where it is the largest."""
    utilities = metric.utility_class(observed.whole.options)
    if utilities is None:
        return None
    errors = [batch.errors(metric.key, utilities)[0] for batch in observed.batches]
    first = max(range(len(errors)), key=lambda k: float(errors[k].max()))
    batch = observed.batches[first]
    index, interval = utilities.worst_of(batch.forecast, batch.outcomes, errors[first])
    return {"utility": index, **interval._asdict()}


def _certificates(
    observed: Measurement, metrics: Sequence[Metric], floors: Mapping[str, Floats], noise: Noise
) -> dict[str, CalibrationInterval]:
    """Bounds on the true UC of each class, and of all but own ones together."""
    evidence: dict[str, Evidence] = {}
    forecast, outcomes, confidence = observed.forecast, observed.outcomes, noise.confidence
    multipliers = normal_multipliers(forecast, noise.noise_seed)
    for metric in metrics:
        utilities = metric.utility_class(observed.options)
        if utilities is not None:
            redrawn = torch.from_numpy(floors[metric.key])
            evidence[metric.key] = evidence_of(
                utilities, forecast, outcomes, redrawn, confidence, multipliers
            )
    own = observed.options.own
    evidence[ALL_CLASSES] = joined([part for key, part in evidence.items() if key not in own])
    return {key: part.interval(confidence) for key, part in evidence.items()}


def _error_curves(observed: Measured, drawn: Mapping[str, Floats]) -> dict[str, Floats]:
    """The fields of `Scorecard.ecdf`."""
    curves: dict[str, Floats] = {}
    for family in FAMILIES:
        batches = [batch.errors(family, batch.users[family])[0] for batch in observed.batches]
        errors = torch.stack(batches).mean(dim=0)
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
