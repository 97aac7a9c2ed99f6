"""Binned calibration errors: TCE_bin (eq. 2.1) and CWE_bin (eq. 2.2) of the paper.

TCE_bin is known as ECE, the expected calibration error (Naeini et al. 2015, Guo et al. 2017), and
CWE_bin as the classwise ECE (Kull et al. 2019). A reliability diagram shows the same bins.

Equal-weight bins are cut by the rank of the confidence (the order is stable, and sizes differ by at
most one). So Σ_bins |mean((u - v) · 1_bin)| comes from the running sum that also gives UC, read at
the bins' edges instead of its extremes. If bins cut no tie, UC >= binned error / bins.
"""

from __future__ import annotations

from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .forecast import Forecast, Outcomes
from .kernels.prefix_range import prefix_range
from .option_checks import check_whole
from .scores import checked
from .utilities.base import UtilityClass
from .utilities.payoffs import ClassWise, TopClass
from .validation import InputError

Scheme = Literal["equal_weight", "equal_width"]
Weights = Literal["uniform", "prior"]


def interval_and_binned_errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int
) -> tuple[Tensor, Tensor]:
    """Return UC and the equal-weight binned error of each utility, from one sort: [R, m] each."""
    if outcomes.multipliers is not None:
        binned_errors = _multiplied_binned_errors(utilities, forecast, outcomes, bins)
        return utilities.errors(forecast, outcomes), binned_errors
    # The sums of weights at which bins end, [R, E]; without weights the numbers of points, [1, E].
    ends = outcomes.size * torch.arange(bins + 1, device=outcomes.size.device) / bins
    edges = (ends + 1e-9).floor()
    if outcomes.weights is not None:  # whole weights count points as repeated rows do
        are_whole = (outcomes.weights == outcomes.weights.round()).all(dim=1, keepdim=True)
        edges = torch.where(are_whole, edges, ends)
    worst, binned = [], []
    for block in utilities.tied_blocks(forecast, outcomes):
        weights = outcomes.weights
        ranges, sums = prefix_range(*block[:3], edges, weights=weights, orders=block.orders)
        worst.append(ranges / outcomes.size)
        binned.append(sums.diff(dim=2).abs().sum(dim=2) / outcomes.size)
    return torch.cat(worst, dim=1), torch.cat(binned, dim=1)


def _multiplied_binned_errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int
) -> Tensor:
    """Return the equal-weight binned error of multiplied residuals: [R, m].

    A point across an edge belongs to the bin in which its middle lies.
    """
    assert outcomes.factors is not None
    factors, errors = outcomes.factors.to(torch.float64), []
    for block in utilities.tied_blocks(forecast, outcomes):
        residuals = block.payoffs[:, block.codes[0]] - block.predicted
        for v, residual in zip(block.predicted, residuals, strict=True):
            order = v.argsort(stable=True)
            weights = torch.ones_like(v) if outcomes.weights is None else outcomes.weights[0, order]
            middles = (weights.cumsum(0) - weights / 2) * bins / outcomes.size[0]
            place = torch.empty_like(order)
            place[order] = middles.to(torch.int64).clamp(max=bins - 1)
            in_bins = residual[:, None] * torch.nn.functional.one_hot(place, bins)
            errors.append((factors @ in_bins).abs().sum(dim=1))
    return torch.stack(errors, dim=1) / outcomes.size


def class_weights(weights: Weights, outcomes: Outcomes, classes: int) -> Tensor:
    """Return w_c of eq. 2.2 per draw: 1/C, or the share of each class among the labels: [R, C]."""
    if weights == "uniform":
        shape = (outcomes.draws, classes)
        return torch.full(shape, 1 / classes, dtype=torch.float64, device=outcomes.labels.device)
    if weights != "prior":
        raise InputError(f"{weights!r}, expected 'uniform' or 'prior'", field="weights")
    counts = [
        torch.bincount(draw, weights=w, minlength=classes).to(torch.float64)
        for draw in outcomes.labels
        for w in ([None] if outcomes.weights is None else outcomes.weights)
    ]
    return torch.stack(counts) / outcomes.size


def _errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int, scheme: Scheme
) -> Tensor:
    """Return the binned error of each utility, [1, m]; `InputError` for a wrong option.

    Bins of equal width are [k/bins, (k+1)/bins), the last one closed.
    """
    check_whole(bins, "bins", 1)
    if scheme == "equal_weight":
        return interval_and_binned_errors(utilities, forecast, outcomes, bins)[1]
    if scheme != "equal_width":
        raise InputError(f"{scheme!r}, expected 'equal_weight' or 'equal_width'", field="scheme")
    errors = []
    for block in utilities.blocks(forecast, outcomes):
        residuals = block.payoffs[:, block.codes[0]].sub_(block.predicted)
        if outcomes.weights is not None:
            residuals *= outcomes.weights
        bin_of = (block.predicted * bins).to(torch.int64).clamp_(0, bins - 1)
        sums = residuals.new_zeros(len(residuals), bins).scatter_add(1, bin_of, residuals)
        errors.append(sums.abs().sum(dim=1))
    return torch.cat(errors)[None] / outcomes.size


def binned_top_class_error(
    probabilities: ArrayLike,
    labels: ArrayLike,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    sample_weight: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    ignore_index: int | str | None = None,
) -> float:
    """Return TCE_bin (eq. 2.1), the ECE: `Σ_bins |mean((max p - hit) · 1_bin)|`, in [0, 1].

    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> round(binned_top_class_error(p, labels=[0, 1, 1, 0], bins=2), 3)
    0.35

    Args:
        bins: number of bins.
        scheme: "equal_weight" for bins by rank, "equal_width" for bins of equal width on [0, 1].
        probabilities, labels, sample_weight, classes, ignore_index: as in `accuracy`.
    """
    given = probabilities, labels, sample_weight, classes
    points = checked(*given, ignore_index=ignore_index)
    return float(_errors(TopClass(), *points, bins, scheme)[0, 0])


def binned_class_wise_error(
    probabilities: ArrayLike,
    labels: ArrayLike,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    weights: Weights = "uniform",
    sample_weight: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    ignore_index: int | str | None = None,
) -> float:
    """Return CWE_bin (eq. 2.2), the classwise ECE: the weighted mean over classes of their errors.

    It is in [0, 1].

    Args:
        weights: "uniform" for 1/C, "prior" for the share of each class among the labels.
        Other arguments: as in `binned_top_class_error`.
    """
    given = probabilities, labels, sample_weight, classes
    forecast, outcomes = checked(*given, ignore_index=ignore_index)
    errors = _errors(ClassWise(), forecast, outcomes, bins, scheme)
    return float((errors * class_weights(weights, outcomes, forecast.classes))[0].sum())
