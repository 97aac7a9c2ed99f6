"""Every number that the paper reports about one forecast, and what of it is noise.

The noise floor: a perfectly calibrated classifier has positive errors on a finite sample. Each
metric is computed again with labels drawn from the forecast itself, for which the forecast is
perfectly calibrated; an observed error inside that range says nothing against calibration. The
order of the predicted utilities does not depend on the labels, so the draws share every sort.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    utility_batch: int | None = None,
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
        utility_batch: take the utility metrics and the eCDFs as means over disjoint seeded batches
            of this many points or a few more, all points used; None, or where there are fewer than
            two batches: over all points at once.
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
    batches = _batches(forecast, outcomes, utility_batch, noise_seed)
    errors = partial(
        _utility_metrics,
        bins=bins,
        weights=class_weights,
        exponents=exponents,
        similarity=similarity,
    )
    found, worst = errors(forecast, outcomes)
    if len(batches) > 1:
        found, worst = _over_batches(found, [errors(*batch) for batch in batches])
    values = _standard_metrics(forecast, outcomes) | found
    drawn = _with_redraws(forecast, y, ecdf_repetitions, noise_seed)
    parts = _batches(forecast, drawn, utility_batch, noise_seed)
    curves = _error_curves(parts, utilities, utility_seed) if utilities else {}
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


def _batches(
    forecast: Forecast, outcomes: Outcomes, size: int | None, seed: int
) -> list[tuple[Forecast, Outcomes]]:
    """Split the points into as many random parts of equal size as hold `size` points each."""
    if size is not None and size < 1:
        raise InputError(f"utility_batch: {size}, expected at least 1")
    count = forecast.n // size if size is not None else 1
    if count <= 1:
        return [(forecast, outcomes)]
    order = torch.randperm(forecast.n, generator=torch.Generator().manual_seed(seed))
    parts = [part.sort().values for part in order.to(outcomes.labels.device).tensor_split(count)]
    return [
        (
            Forecast(forecast.probabilities[part]),
            Outcomes(outcomes.labels[:, part], outcomes.ranks[:, part]),
        )
        for part in parts
    ]


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


Found = tuple[dict[str, Tensor], dict[str, dict[str, float]]]
"""Per key the values of all draws, and per utility metric the worst utility of the true labels."""


def _utility_metrics(
    forecast: Forecast,
    outcomes: Outcomes,
    bins: int,
    weights: Weights,
    exponents: tuple[float, ...],
    similarity: Any,
) -> Found:
    """Return all utility metrics, and the binned errors, which share the sorts of UC."""
    values: dict[str, Tensor] = {}
    worst: dict[str, dict[str, float]] = {}
    for key, utilities in (("cwe", ClassWise()), ("tce", TopClass())):
        errors, binned = interval_and_binned_errors(utilities, forecast, outcomes, bins)
        values[f"u_{key}"] = errors.max(dim=1).values
        worst[f"u_{key}"] = _worst(utilities, forecast, outcomes, errors)
        if key == "cwe":
            binned = binned * class_weights(weights, outcomes, forecast.classes)
        values[f"{key}_bin"] = binned.sum(dim=1)
    classes: dict[str, UtilityClass] = {
        "u_topk": TopK(),
        "u_dcg": DiscountedCumulativeGain(tuple(exponents)),
    }
    if similarity is not None:
        classes["u_w2v"] = Similarity(similarity)
    for key, others in classes.items():
        errors = others.errors(forecast, outcomes)
        values[key] = errors.max(dim=1).values
        worst[key] = _worst(others, forecast, outcomes, errors)
    values["u_comb"] = torch.maximum(values["u_cwe"], values["u_topk"])
    return values, worst


def _over_batches(whole: dict[str, Tensor], batches: Sequence[Found]) -> Found:
    """Utility metrics as means over batches, binned errors of all points.

    The worst utility is that of the batch with the largest error.
    """
    values = {
        key: torch.stack([found[key] for found, _ in batches]).mean(dim=0)
        if key.startswith("u_")
        else of_all
        for key, of_all in whole.items()
    }
    worst = {
        key: max((found[key] for _, found in batches), key=lambda one: one["error"])
        for key in batches[0][1]
    }
    return values, worst


def _error_curves(
    batches: Sequence[tuple[Forecast, Outcomes]], count: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    classes = batches[0][0].classes
    families: Mapping[str, UtilityClass] = {
        "linear": Linear.sample(count, classes, seed),
        "rank": Rank.sample(count, classes, seed + 1),
    }
    curves: dict[str, NDArray[np.float64]] = {}
    for family, utilities in families.items():
        errors = torch.stack([utilities.errors(*batch) for batch in batches]).mean(dim=0)
        values = errors.cpu().numpy()
        curves[family] = values[0]
        drawn = np.sort(values[1:], axis=1)
        if len(drawn):
            curves[f"{family}_floor_mean"] = drawn.mean(axis=0)
            curves[f"{family}_floor_q05"] = np.quantile(drawn, 0.05, axis=0)
            curves[f"{family}_floor_q95"] = np.quantile(drawn, 0.95, axis=0)
    return curves


def _floor(draws: Tensor) -> dict[str, float]:
    if not len(draws):
        return {}
    return {"mean": float(draws.mean()), "q95": float(torch.quantile(draws, 0.95))}
