"""Every number that the paper reports about one forecast, and what of it is noise.

The noise floor: a perfectly calibrated classifier has positive errors on a finite sample. Each
metric is computed again with labels drawn from the forecast itself, for which the forecast is
perfectly calibrated; an observed error inside that range says nothing against calibration. The
order of the predicted utilities does not depend on the labels, so the draws share every sort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.binned import Weights, class_weights, interval_and_binned_errors
from metrics.forecast import Forecast, Outcomes
from metrics.scores import accuracies, brier_scores, log_losses
from metrics.utilities.base import UtilityClass
from metrics.utilities.payoffs import (
    ClassWise,
    DiscountedCumulativeGain,
    Linear,
    Rank,
    TopClass,
    TopK,
)
from metrics.utilities.similarity import Similarity
from metrics.validation import InputError, check_labels, check_probabilities

METRICS = (
    "accuracy",
    "brier",
    "nll",
    "cwe_bin",
    "tce_bin",
    "u_cwe",
    "u_topk",
    "u_tce",
    "u_comb",
    "u_dcg",
    "u_w2v",
)
"""Metric keys in the order of the tables; `u_w2v` only where a similarity is given."""


@dataclass(frozen=True)
class Scorecard:
    """The metrics of one forecast.

    metrics: value per key of `METRICS`.
    noise_floor: per key, mean and 95 % quantile ("mean", "q95") under labels drawn from it.
    worst: per utility metric, the utility attaining it and its interval ("utility", "low", "high",
        "sign", "error"); "utility" counts from 0 within the class.
    ecdf: "linear" and "rank": UC of each sampled utility, [M], in the order of the sample; and
        "<family>_floor_mean", "_q05", "_q95": sorted errors under drawn labels, [M].
    """

    metrics: dict[str, float]
    noise_floor: dict[str, dict[str, float]]
    worst: dict[str, dict[str, float]]
    ecdf: dict[str, NDArray[np.float64]] = field(default_factory=dict)


def scorecard(
    probabilities: Any,
    labels: Any,
    *,
    utilities: int = 1500,
    utility_seed: int = 0,
    bins: int = 15,
    class_weights: Weights = "uniform",
    floor_repetitions: int = 100,
    ecdf_repetitions: int = 20,
    noise_seed: int = 0,
    similarity: Any = None,
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2),
    utility_points: int | None = None,
    rows_sum_to_one: bool = True,
) -> Scorecard:
    """Compute all metrics, their noise floor and the eCDFs of U_lin and U_rank.

    Args:
        probabilities: [n, C]; labels: [n].
        utilities: M, sampled per family; 0 leaves the eCDFs out.
        utility_seed: the sample of utilities, the same for every method and split.
        bins, class_weights: of the binned errors.
        floor_repetitions, ecdf_repetitions: label draws for the metrics' and the eCDFs' floors.
        noise_seed: the uniforms behind the draws, the same for every method (paired).
        similarity: [C, C], adds `u_w2v`.
        exponents: grid of γ for `u_dcg`.
        utility_points: evaluate the utility metrics on a seeded subset of this many points.
        rows_sum_to_one: False admits rows as one-vs-all isotonic regression leaves them.

    Raises:
        InputError: shapes, ranges or row sums are off, or an option is out of range.
    """
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    y = check_labels(labels, *p.shape).to(p.device)
    if min(utilities, floor_repetitions, ecdf_repetitions) < 0:
        raise InputError("utilities, floor_repetitions, ecdf_repetitions: expected >= 0")
    forecast = Forecast(p)
    outcomes = _with_redraws(forecast, y, floor_repetitions, noise_seed)
    values = _standard_metrics(forecast, outcomes)
    worst: dict[str, dict[str, float]] = {}
    if utility_points is not None and utility_points < len(y):
        _add_class_wise_and_top_class(values, worst, forecast, outcomes, bins, class_weights)
        forecast, y = _subset(p, y, utility_points, noise_seed)
        outcomes = _with_redraws(forecast, y, floor_repetitions, noise_seed)
        binned = {key: values[key] for key in ("cwe_bin", "tce_bin")}
        _add_class_wise_and_top_class(values, worst, forecast, outcomes, bins, class_weights)
        values.update(binned)
    else:
        _add_class_wise_and_top_class(values, worst, forecast, outcomes, bins, class_weights)
    _add_other_utilities(values, worst, forecast, outcomes, exponents, similarity)
    drawn = _with_redraws(forecast, y, ecdf_repetitions, noise_seed)
    curves = _error_curves(forecast, drawn, utilities, utility_seed) if utilities else {}
    ordered = {key: values[key] for key in METRICS if key in values}
    return Scorecard(
        metrics={key: float(draws[0]) for key, draws in ordered.items()},
        noise_floor={key: _floor(draws[1:]) for key, draws in ordered.items()},
        worst=worst,
        ecdf=curves,
    )


def _with_redraws(forecast: Forecast, labels: Tensor, repetitions: int, seed: int) -> Outcomes:
    """Return the true outcomes as draw 0, followed by `repetitions` draws from the forecast."""
    true = forecast.outcomes(labels)
    generator = torch.Generator().manual_seed(seed)
    uniforms = torch.rand(repetitions, forecast.n, generator=generator, dtype=torch.float64)
    drawn = forecast.redraw(uniforms)
    return Outcomes(torch.cat([true.labels, drawn.labels]), torch.cat([true.ranks, drawn.ranks]))


def _subset(p: Tensor, y: Tensor, points: int, seed: int) -> tuple[Forecast, Tensor]:
    if points < 1:
        raise InputError(f"utility_points: {points}, expected at least 1")
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(y), generator=generator)[:points].sort().values.to(p.device)
    return Forecast(p[chosen]), y[chosen]


def _standard_metrics(forecast: Forecast, outcomes: Outcomes) -> dict[str, Tensor]:
    return {
        "accuracy": accuracies(outcomes),
        "brier": brier_scores(forecast, outcomes),
        "nll": log_losses(forecast, outcomes),
    }


def _worst(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, errors: Tensor
) -> dict[str, float]:
    index, interval = utilities.worst_of(forecast, outcomes, errors[0])
    return {"utility": index, **interval._asdict()}


def _add_class_wise_and_top_class(
    values: dict[str, Tensor],
    worst: dict[str, dict[str, float]],
    forecast: Forecast,
    outcomes: Outcomes,
    bins: int,
    weights: Weights,
) -> None:
    """Add u_cwe, cwe_bin, u_tce and tce_bin: the binned errors share the sorts of UC."""
    for key, utilities in (("cwe", ClassWise()), ("tce", TopClass())):
        errors, binned = interval_and_binned_errors(utilities, forecast, outcomes, bins)
        values[f"u_{key}"] = errors.max(dim=1).values
        worst[f"u_{key}"] = _worst(utilities, forecast, outcomes, errors)
        if key == "cwe":
            binned = binned * class_weights(weights, outcomes, forecast.classes)
        values[f"{key}_bin"] = binned.sum(dim=1)


def _add_other_utilities(
    values: dict[str, Tensor],
    worst: dict[str, dict[str, float]],
    forecast: Forecast,
    outcomes: Outcomes,
    exponents: tuple[float, ...],
    similarity: Any,
) -> None:
    """Add u_topk, u_dcg, u_w2v, and u_comb = max(u_cwe, u_topk)."""
    classes: dict[str, UtilityClass] = {
        "u_topk": TopK(),
        "u_dcg": DiscountedCumulativeGain(tuple(exponents)),
    }
    if similarity is not None:
        classes["u_w2v"] = Similarity(similarity)
    for key, utilities in classes.items():
        errors = utilities.errors(forecast, outcomes)
        values[key] = errors.max(dim=1).values
        worst[key] = _worst(utilities, forecast, outcomes, errors)
    values["u_comb"] = torch.maximum(values["u_cwe"], values["u_topk"])


def _error_curves(
    forecast: Forecast, outcomes: Outcomes, count: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    families: Mapping[str, UtilityClass] = {
        "linear": Linear.sample(count, forecast.classes, seed),
        "rank": Rank.sample(count, forecast.classes, seed + 1),
    }
    curves: dict[str, NDArray[np.float64]] = {}
    for family, utilities in families.items():
        errors = utilities.errors(forecast, outcomes).cpu().numpy()
        curves[family] = errors[0]
        drawn = np.sort(errors[1:], axis=1)
        if len(drawn):
            curves[f"{family}_floor_mean"] = drawn.mean(axis=0)
            curves[f"{family}_floor_q05"] = np.quantile(drawn, 0.05, axis=0)
            curves[f"{family}_floor_q95"] = np.quantile(drawn, 0.95, axis=0)
    return curves


def _floor(draws: Tensor) -> dict[str, float]:
    if not len(draws):
        return {}
    return {"mean": float(draws.mean()), "q95": float(torch.quantile(draws, 0.95))}
