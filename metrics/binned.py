"""Binned calibration errors: TCE_bin (eq. 2.1) and CWE_bin (eq. 2.2) of the paper.

Equal-weight bins are cut by the rank of the confidence (stable, sizes differ by at most one), so
Σ_bins |mean((u - v) · 1_bin)| is read off the running sum that also gives UC: at the bins' edges
instead of at its extremes. Hence UC >= binned error / bins for bins that cut no tie.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.kernels.prefix_range import prefix_range
from metrics.scores import checked
from metrics.utilities.base import UtilityClass
from metrics.utilities.payoffs import ClassWise, TopClass
from metrics.validation import InputError, is_whole

Scheme = Literal["equal_weight", "equal_width"]
Weights = Literal["uniform", "prior"]


def _check_bins(bins: Any) -> None:
    if not is_whole(bins) or bins < 1:
        raise InputError(f"bins: {bins!r}, expected a whole number of at least 1")


def interval_and_binned_errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int
) -> tuple[Tensor, Tensor]:
    """Return UC and the equal-weight binned error of each utility, from one sort: [R, m] each."""
    _check_bins(bins)
    edges = _edges(outcomes, bins)
    worst, binned = [], []
    for block in utilities.tied_blocks(forecast, outcomes):
        sums = prefix_range(
            block.predicted, block.payoffs, block.codes, edges, weights=outcomes.weights
        )
        worst.append((sums.high - sums.low) / outcomes.size)
        binned.append(sums.at_edges.diff(dim=2).abs().sum(dim=2) / outcomes.size)
    return torch.cat(worst, dim=1), torch.cat(binned, dim=1)


def _edges(outcomes: Outcomes, bins: int) -> Tensor:
    """Where the bins end: after so many points [E], or after so much weight [R, E].

    Whole weights cut the bins as so many repeated rows would be cut.
    """
    steps = torch.arange(bins + 1)
    if outcomes.weights is None:
        return steps * outcomes.labels.shape[1] // bins
    ends = outcomes.size * steps.to(outcomes.size.device) / bins
    whole = (outcomes.weights == outcomes.weights.round()).all(dim=1, keepdim=True)
    return torch.where(whole, (ends + 1e-9).floor(), ends)


def _equal_width_errors(
    utilities: UtilityClass, forecast: Forecast, outcomes: Outcomes, bins: int
) -> Tensor:
    """Return the binned error over bins [k/bins, (k+1)/bins), the last one closed: [R, m]."""
    parts = []
    for block in utilities.blocks(forecast, outcomes):
        v = block.predicted
        bin_of = (v * bins).floor().clamp(0, bins - 1).to(torch.int64)
        residuals = [block.payoffs[:, draw] - v for draw in block.codes]
        if outcomes.weights is not None:
            residuals = [r * w for r in residuals for w in outcomes.weights]
        empty = torch.zeros(len(v), bins, dtype=v.dtype, device=v.device)
        rows = [empty.scatter_add(1, bin_of, one).abs().sum(dim=1) for one in residuals]
        parts.append(torch.stack(rows) / outcomes.size)
    return torch.cat(parts, dim=1)


def class_weights(weights: Weights, outcomes: Outcomes, classes: int) -> Tensor:
    """Return w_c of eq. 2.2 per draw: 1/C, or the share of each class among the labels: [R, C]."""
    if weights == "uniform":
        shape = (outcomes.draws, classes)
        return torch.full(shape, 1 / classes, dtype=torch.float64, device=outcomes.labels.device)
    if weights == "prior":
        counts = [
            torch.bincount(draw, weights=w, minlength=classes).to(torch.float64)
            for draw in outcomes.labels
            for w in ([None] if outcomes.weights is None else outcomes.weights)
        ]
        return torch.stack(counts) / outcomes.size
    raise InputError(f"weights: {weights!r}, expected 'uniform' or 'prior'")


def _errors(
    utilities: UtilityClass,
    probabilities: Any,
    labels: Any,
    bins: int,
    scheme: Scheme,
    sample_weight: Any,
) -> tuple[Tensor, Outcomes]:
    forecast, outcomes = checked(probabilities, labels, sample_weight)
    if scheme == "equal_weight":
        return interval_and_binned_errors(utilities, forecast, outcomes, bins)[1], outcomes
    if scheme == "equal_width":
        _check_bins(bins)
        return _equal_width_errors(utilities, forecast, outcomes, bins), outcomes
    raise InputError(f"scheme: {scheme!r}, expected 'equal_weight' or 'equal_width'")


def binned_top_class_error(
    probabilities: Any,
    labels: Any,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    sample_weight: Any = None,
) -> float:
    """Return TCE_bin (eq. 2.1): Σ_bins |mean((max p - hit) · 1_bin)|, in [0, 1].

    Args:
        probabilities: [n, C], rows that sum to one, NumPy or torch.
        labels: [n] class numbers in [0, C).
        bins: number of bins.
        scheme: bins of equal weight by rank, or of equal width on [0, 1].
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times.

    Raises:
        InputError: shapes, ranges or row sums are off, or the options unknown.
    """
    errors, _ = _errors(TopClass(), probabilities, labels, bins, scheme, sample_weight)
    return float(errors[0, 0])


def binned_class_wise_error(
    probabilities: Any,
    labels: Any,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    weights: Weights = "uniform",
    sample_weight: Any = None,
) -> float:
    """Return CWE_bin (eq. 2.2): the weighted mean over classes of their binned errors, in [0, 1].

    Args:
        weights: "uniform" for 1/C, "prior" for the share of each class among the labels.
        others: as `binned_top_class_error`.
    """
    errors, outcomes = _errors(ClassWise(), probabilities, labels, bins, scheme, sample_weight)
    return float((errors * class_weights(weights, outcomes, errors.shape[1]))[0].sum())
