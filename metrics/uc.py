"""Utility calibration of single utilities: the binning-free, worst-interval estimator (Lemma 3.3).

    UC(f, u) = sup over closed intervals I of |mean((u - v) · 1{v in I})|

with v the predicted and u the realized utility. With points sorted by v, the sum over an interval
is a difference of two running sums, so the supremum is the range of the running sum: O(n log n).
The errors of a class of utilities have a distribution, the eCDF (section 4, appendix B.5).
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Array, OtherArray, like
from .errors import InputError
from .kernels.prefix_range import prefix_range
from .layout import check_same_order
from .shown import WorstInterval, levels
from .validation import check_numbers, check_weights

EQUAL_SUMS = 1e-9
"""Sums of residuals that differ by at most this share of their range count as equal, and so do
errors by this share of the largest."""


def _checked(
    predicted: ArrayLike, realized: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, Array]:
    check_same_order({"predicted": predicted, "realized": realized, "sample_weight": sample_weight})
    v = check_numbers(predicted, "predicted").astype(np.float64, copy=False)
    u = check_numbers(realized, "realized").astype(np.float64, copy=False)
    if v.ndim == 0 or v.shape[-1] == 0:
        raise InputError("expected shape [..., n] with at least one point", field="predicted")
    if v.shape != u.shape:
        raise InputError(
            f"shape {list(u.shape)} differs from predicted's {list(v.shape)}",
            field="realized",
            fixes="give one realized utility per predicted one",
        )
    for name, values in (("predicted", v), ("realized", u)):
        if not bool(np.isfinite(values).all()):
            raise InputError(
                "NaN or infinite values", field=name, fixes="recompute or remove those points"
            )
    return v, u


@overload
def utility_calibration(
    predicted: OtherArray,
    realized: ArrayLike | OtherArray,
    *,
    sample_weight: ArrayLike | OtherArray | None = None,
) -> OtherArray: ...
@overload
def utility_calibration(
    predicted: ArrayLike, realized: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> NDArray[np.float64]: ...
def utility_calibration(predicted: Any, realized: Any, *, sample_weight: Any = None) -> Any:
    """Return UC of each utility (eq. 3.2): the largest difference of predicted and realized.

    >>> float(utility_calibration(predicted=[0.75, 0.75, 0.5, 0.25], realized=[1, 0, 0, 0]))
    0.3125

    Args:
        predicted: [..., n] predicted utilities v, as any array.
        realized: [..., n] realized utilities u.
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times.

    Returns:
        [...] errors in the unit of the utilities, of the kind of `predicted`.

    Raises:
        InputError: shapes that differ, NaN or infinite values, no point.
    """
    v, u = _checked(predicted, realized, sample_weight)
    n = v.shape[-1]
    rows_v, rows_u = v.reshape(-1, n), u.reshape(-1, n)
    points = np.arange(n)[None]
    weights = None if sample_weight is None else check_weights(sample_weight, n)[None]
    ranges, _ = prefix_range(rows_v, rows_u, points, weights=weights)
    errors = ranges[0] / (n if weights is None else weights.sum())
    return like(errors.reshape(v.shape[:-1]), predicted)


def worst_interval(
    predicted: ArrayLike,
    realized: ArrayLike,
    *,
    tolerance: float = 0.0,
    sample_weight: ArrayLike | None = None,
) -> WorstInterval:
    """Return the interval and the sign that attain UC of one utility (eq. 3.3), and its error.

    >>> worst_interval(predicted=[0.75, 0.75, 0.5, 0.25], realized=[1, 0, 0, 0])
    WorstInterval(error=0.3125, low=0.25, high=0.75, sign=1)

    Args:
        predicted, realized: [n] predicted utilities v and realized utilities u.
        tolerance: neighbours in the order of v that are no further apart count as tied; the
            interval contains all of them or none.
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times.

    Raises:
        InputError: shapes other than [n], NaN or infinite values, no point.

    If the errors of several intervals differ only by rounding, the first interval is taken.
    """
    v, u = _checked(predicted, realized, sample_weight)
    if v.ndim != 1:
        raise InputError(
            "expected shape [n]", field="predicted", fixes="ask for one utility at a time"
        )
    if sample_weight is None:
        return interval_of_sums(v, u, tolerance)
    weights = check_weights(sample_weight, v.shape[0])
    v, u, weights = (column[weights > 0] for column in (v, u, weights))  # 0 is no point
    return interval_of_sums(v, u, tolerance, weights)


def interval_of_sums(
    v: Array, u: Array, tolerance: float, weights: Array | None = None
) -> WorstInterval:
    """`worst_interval` of finite numbers float64 [n], with positive weights."""
    order = np.argsort(v, kind="stable")
    ordered = v[order]
    residuals = u[order] - ordered
    residuals = residuals if weights is None else weights[order] * residuals
    sums = np.concatenate([[0.0], residuals.cumsum()])
    positions = np.flatnonzero(np.pad(np.diff(ordered) > tolerance, 1, constant_values=True))
    sums = sums[positions]
    # Of sums that differ only by rounding the first is taken, so that rounding does not decide.
    low, high = sums.min(), sums.max()
    slack = EQUAL_SUMS * (high - low)
    bottom = int((sums <= low + slack).argmax())
    top = int((sums >= high - slack).argmax())
    error = float(sums[top] - sums[bottom]) / (len(v) if weights is None else float(weights.sum()))
    if error <= 0:
        return WorstInterval(0.0, float(ordered[0]), float(ordered[-1]), 0)
    first, last = int(positions[min(bottom, top)]), int(positions[max(bottom, top)]) - 1
    sign = -1 if top > bottom else 1
    return WorstInterval(error, float(ordered[first]), float(ordered[last]), sign)


def first_largest(errors: Array) -> int:
    """Return the first of `errors` [m] that is the largest but for rounding.

    The two classes of a binary forecast have equal errors, so rounding would decide between them.
    """
    return int((errors >= (1 - EQUAL_SUMS) * errors.max()).argmax())


def ecdf(errors: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the errors [M] in ascending order and, for each, the share of errors up to it."""
    values = check_numbers(errors, "errors").astype(np.float64, copy=False)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InputError(
            f"expected finite values of shape [M], got {list(values.shape)}", field="errors"
        )
    return np.sort(values), levels(values.size)
