"""Utility calibration of single utilities: the binning-free, worst-interval estimator (Lemma 3.3).

    UC(f, u) = sup over closed intervals I of |mean((u - v) · 1{v in I})|

with v the predicted and u the realized utility. Sorted by v, the sum over an interval is a
difference of two running sums, so the supremum is the range of the running sum: O(n log n).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from metrics.kernels.prefix_range import prefix_range
from metrics.kinds import like
from metrics.validation import InputError, check_numbers


class WorstInterval(NamedTuple):
    """Where one utility is calibrated worst: the closed interval [low, high] of predicted utility.

    sign is +1 where the realized utility exceeds the predicted one there, -1 where it falls short
    (0 for a perfect match); error = sign · mean((u - v) · 1{low <= v <= high}).
    """

    error: float
    low: float
    high: float
    sign: int


def _checked(predicted: Any, realized: Any) -> tuple[Tensor, Tensor]:
    v = check_numbers(predicted, "predicted").to(torch.float64)
    u = check_numbers(realized, "realized").to(torch.float64).to(v.device)
    if v.ndim == 0 or v.shape[-1] == 0:
        raise InputError("predicted: expected shape [..., n] with at least one point")
    if v.shape != u.shape:
        raise InputError(
            f"realized: shape {list(u.shape)} differs from predicted's {list(v.shape)}; "
            "give one realized utility per predicted one"
        )
    for name, values in (("predicted", v), ("realized", u)):
        if not bool(torch.isfinite(values).all()):
            raise InputError(f"{name}: NaN or infinite values; recompute or remove those points")
    return v, u


def utility_calibration(predicted: Any, realized: Any) -> Any:
    """Return UC of each utility (eq. 5): how far prediction and outcome part on the worst interval.

    Args:
        predicted: [..., n] predicted utilities v, NumPy or torch.
        realized: [..., n] realized utilities u.

    Returns:
        [...] errors in the unit of the utilities, of the kind of `predicted`.

    Raises:
        InputError: the shapes differ, there is no point, or a value is not finite.
    """
    v, u = _checked(predicted, realized)
    n = v.shape[-1]
    rows_v, rows_u = v.reshape(-1, n), u.reshape(-1, n)
    everyone = torch.arange(n, device=v.device)[None]
    sums = prefix_range(rows_v, rows_u, everyone)
    errors = (sums.high[0] - sums.low[0]) / n
    return like(errors.reshape(v.shape[:-1]), predicted)


def worst_interval(predicted: Any, realized: Any) -> WorstInterval:
    """Return the interval that attains UC of one utility, predicted and realized of shape [n].

    Raises:
        InputError: as `utility_calibration`, or the input is not one-dimensional.
    """
    v, u = _checked(predicted, realized)
    if v.ndim != 1:
        raise InputError("predicted: expected shape [n]; ask for one utility at a time")
    v, u = v.cpu(), u.cpu()  # CUDA may add up one long row in another order each time
    n = v.shape[0]
    ordered, order = torch.sort(v, stable=True)
    sums = torch.nn.functional.pad((u[order] - ordered).cumsum(0), (1, 0))
    allowed = torch.ones(n + 1, dtype=torch.bool, device=v.device)
    allowed[1:-1] = ordered[1:] != ordered[:-1]
    positions = torch.nonzero(allowed).flatten()
    sums = sums[positions]
    bottom, top = int(positions[sums.argmin()]), int(positions[sums.argmax()])
    if bottom == top:
        return WorstInterval(0.0, float(ordered[0]), float(ordered[-1]), 0)
    first, last = min(bottom, top), max(bottom, top) - 1
    error = float(sums.max() - sums.min()) / n
    sign = 1 if top > bottom else -1
    return WorstInterval(error, float(ordered[first]), float(ordered[last]), sign)
