"""Binned calibration errors: TCE_bin (eq. 2.1) and CWE_bin (eq. 2.2) of the paper.

TCE_bin is known as ECE, the expected calibration error (Naeini et al. 2015, Guo et al. 2017), and
CWE_bin as the classwise ECE (Kull et al. 2019). A reliability diagram shows the same bins.

Equal-weight bins are cut by the rank of the confidence (the order is stable, and sizes differ by at
most one). So Σ_bins |mean((u - v) · 1_bin)| comes from the running sum that also gives UC, read at
the bins' edges instead of its extremes. If bins cut no tie, UC >= binned error / bins.
"""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .errors import InputError
from .forecast import Forecast, Outcomes
from .kernels.bin_sums import sums_in_bins
from .kernels.prefix_range import prefix_range
from .kernels.threads import product
from .keywords import PointOptions
from .option_checks import check_whole
from .scores import checked
from .utilities.base import UtilityClass
from .utilities.standard import ClassWise, TopClass
from .weights import are_counts

Scheme = Literal["equal_weight", "equal_width"]
Weights = Literal["uniform", "prior"]


def interval_and_binned_errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int
) -> tuple[Array, Array]:
    """Return UC and the equal-weight binned error of each utility, from one sort: [R, m] each."""
    if outcomes.multipliers is not None:
        binned_errors = _multiplied_binned_errors(utilities, forecast, outcomes, bins)
        return utilities.errors(forecast, outcomes), binned_errors
    # The sums of weights at which bins end, [R, E]; without weights the numbers of points, [1, E].
    ends = outcomes.size * np.arange(bins + 1) / bins
    edges = np.floor(ends + 1e-9)
    if outcomes.weights is not None:  # whole weights count points as repeated rows do
        edges = np.where(are_counts(outcomes.weights)[:, None], edges, ends)
    worst, binned = [], []
    for block in utilities.tied_blocks(forecast, outcomes):
        weights = outcomes.weights
        ranges, sums = prefix_range(*block[:3], edges, weights=weights, orders=block.orders)
        worst.append(ranges / outcomes.size)
        binned.append(np.abs(np.diff(sums, axis=2)).sum(axis=2) / outcomes.size)
    return np.concatenate(worst, axis=1), np.concatenate(binned, axis=1)


def _multiplied_binned_errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int
) -> Array:
    """Return the equal-weight binned error of multiplied residuals: [R, m].

    A point across an edge belongs to the bin in which its middle lies.
    """
    assert outcomes.factors is not None
    factors, errors = outcomes.factors.astype(np.float64, copy=False), []
    for block in utilities.tied_blocks(forecast, outcomes):
        residuals = block.payoffs[:, block.codes[0]] - block.predicted
        for v, residual in zip(block.predicted, residuals, strict=True):
            order = v.argsort(kind="stable")
            weights = np.ones_like(v) if outcomes.weights is None else outcomes.weights[0, order]
            middles = (weights.cumsum() - weights / 2) * bins / outcomes.size[0]
            place = np.empty_like(order)
            place[order] = middles.astype(np.int64).clip(max=bins - 1)
            in_bins = residual[:, None] * (place[:, None] == np.arange(bins))
            errors.append(np.abs(product(factors, in_bins)).sum(axis=1))
    return np.stack(errors, axis=1) / outcomes.size


def class_weights(weights: Weights, outcomes: Outcomes, classes: int) -> Array:
    """Return w_c of eq. 2.2 per draw: 1/C, or the share of each class among the labels: [R, C]."""
    if weights == "uniform":
        shape = (outcomes.draws, classes)
        return np.full(shape, 1 / classes)
    if weights != "prior":
        raise InputError(f"{weights!r}, expected 'uniform' or 'prior'", field="weights")
    counts = [
        np.bincount(draw, weights=w, minlength=classes).astype(np.float64)
        for draw in outcomes.labels
        for w in ([None] if outcomes.weights is None else outcomes.weights)
    ]
    return np.stack(counts) / outcomes.size


def _errors(
    utilities: ClassWise | TopClass,
    forecast: Forecast,
    outcomes: Outcomes,
    bins: int,
    scheme: Scheme,
) -> Array:
    """Return the binned error of each utility, [1, m]; `InputError` for a wrong option.

    Bins of equal width are [k/bins, (k+1)/bins), the last one closed.
    """
    check_whole(bins, "bins", 1)
    if scheme == "equal_weight":
        return interval_and_binned_errors(utilities, forecast, outcomes, bins)[1]
    if scheme != "equal_width":
        raise InputError(f"{scheme!r}, expected 'equal_weight' or 'equal_width'", field="scheme")
    if isinstance(utilities, TopClass):
        confidences, _ = forecast.top
        predicted, occurred = confidences[:, None], np.where(outcomes.hits[0], 0, -1)
    else:
        predicted, occurred = forecast.probabilities, outcomes.labels[0]
    weights = None if outcomes.weights is None else outcomes.weights[0]
    sums = sums_in_bins(predicted, occurred, weights, bins)
    return np.abs(sums).sum(axis=1)[None] / outcomes.size


def binned_top_class_error(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    **options: Unpack[PointOptions],
) -> float:
    """Return TCE_bin (eq. 2.1), the ECE: `Σ_bins |mean((max p - hit) · 1_bin)|`, in [0, 1].

    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> round(binned_top_class_error(p, labels=[0, 1, 1, 0], bins=2), 3)
    0.35

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`, with the same errors.
        **options: as in `accuracy`.
        bins: number of bins, at least 1.
        scheme: "equal_weight" for bins by rank, "equal_width" for bins of equal width on [0, 1].
    """
    points = checked(probabilities, labels, **options)
    return float(_errors(TopClass(), *points, bins, scheme)[0, 0])


def binned_class_wise_error(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    weights: Weights = "uniform",
    **options: Unpack[PointOptions],
) -> float:
    """Return CWE_bin (eq. 2.2), the classwise ECE: the weighted mean over classes of their errors.

    It is in [0, 1].

    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> round(binned_class_wise_error(p, labels=[0, 1, 1, 0], bins=2), 3)
    0.2

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`, with the same errors.
        bins, scheme: as in `binned_top_class_error`.
        **options: as in `accuracy`.
        weights: of the classes; "uniform" for 1/C, "prior" for each class's share of the labels.
    """
    forecast, outcomes = checked(probabilities, labels, **options)
    errors = _errors(ClassWise(), forecast, outcomes, bins, scheme)
    return float((errors * class_weights(weights, outcomes, forecast.classes))[0].sum())
