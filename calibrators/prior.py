"""Calibrated probabilities where classes are more or less frequent than at the calibration.

If only the shares of the classes change, and not what points of a class look like (label shift), a
probability p_c that was calibrated under the shares π becomes p_c π'_c / π_c, normalised, under the
shares π' (Elkan 2001): `reweight`. If π' is not known, `estimate_prior` finds the shares under
which the answers to new points without labels are most likely (expectation maximisation, Saerens et
al. 2002). Its standard errors come from the observed information. They cover the noise of the new
points, but not errors of the calibrator: too few calibration points, or points that also look
different.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from utility_calibration.metrics.arrays import Array, OtherArray, as_array, like
from utility_calibration.metrics.errors import InputError

TOLERANCE = 1e-3  # of the sum of stated shares
ITERATIONS, CONVERGED = 10_000, 1e-9  # of expectation maximisation; largest change of a share


@dataclass(frozen=True)
class PriorEstimate:
    """The classes' shares among new points, estimated without labels: [C] each.

    Each class's own interval from `lower` to `upper` has the confidence asked for.
    """

    shares: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@overload
def reweight(p: OtherArray, prior: ArrayLike, shares: ArrayLike) -> OtherArray: ...
@overload
def reweight(p: ArrayLike, prior: ArrayLike, shares: ArrayLike) -> NDArray[np.float64]: ...
def reweight(p: Any, prior: ArrayLike, shares: ArrayLike) -> Any:
    """Return calibrated probabilities for points among which the classes have other shares.

    A row keeps its sum. A row that would be zero, because only impossible classes had a
    probability, stays as it is.

    >>> import numpy as np
    >>> reweight(np.array([[0.5, 0.5], [0.9, 0.1]]), prior=[0.2, 0.8], shares=[0.5, 0.5]).round(3)
    array([[0.2  , 0.8  ],
           [0.692, 0.308]])

    Args:
        p: [n, C], what a fitted calibrator predicts for the points.
        prior: [C], the shares of the classes among these points, in the order of the columns.
        shares: [C], their shares among the calibration points: `calibrator.shares_`.

    Returns:
        float64 [n, C] of the kind of `p`.

    Raises:
        InputError: shares that are negative, do not sum to one or are not one per class, or a class
            that gets a share although it had no calibration point.
    """
    values, before = _checked(p, shares)
    after = _checked_prior(prior, before)
    factors = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
    moved = values * factors
    total = moved.sum(axis=1, keepdims=True)
    tiny = np.finfo(np.float64).tiny
    scaled = moved * (values.sum(axis=1, keepdims=True) / total.clip(min=tiny))
    return like(np.where(total > 0, scaled, values), p)


def estimate_prior(
    p: ArrayLike | OtherArray, shares: ArrayLike, confidence: float = 0.95
) -> PriorEstimate:
    """Estimate the shares of the classes among points without labels, with intervals.

    Args:
        p: [n, C], what a fitted calibrator predicts for the points.
        shares: [C], the shares among the calibration points: `calibrator.shares_`. Classes of which
            there was no point keep the share 0.
        confidence: of each class's interval, between 0 and 1.

    Raises:
        InputError: a confidence outside (0, 1), or not one share per class.
    """
    if not 0 < confidence < 1:
        raise InputError(confidence, field="confidence", fixes="give a number between 0 and 1")
    values, before = _checked(p, shares)
    # Up to a factor per point.
    likelihoods = values * np.divide(1.0, before, out=np.zeros_like(before), where=before > 0)
    prior = before
    for _ in range(ITERATIONS):
        joint = likelihoods * prior
        update = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        change = np.abs(update - prior).max()
        prior = update
        if change < CONVERGED:
            break
    scores = likelihoods / (likelihoods @ prior)[:, None]
    tangent = np.eye(len(prior)) - 1 / len(prior)  # shares sum to one
    information = tangent @ (scores.T @ scores) @ tangent
    variances = np.diag(np.linalg.pinv(information, hermitian=True)).clip(min=0)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(variances)
    return PriorEstimate(prior, (prior - half).clip(min=0), (prior + half).clip(max=1))


def shares_of(labels: Array, classes: int, weights: Array | None = None) -> NDArray[np.float64]:
    """Return the share of each class among `labels` [n], weighted if asked: [C]."""
    counts = np.bincount(labels, weights, minlength=classes).astype(np.float64)
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def _checked(p: ArrayLike | OtherArray, shares: ArrayLike) -> tuple[Array, Array]:
    """Return probabilities [n, C] and the shares [C] at the calibration as float64."""
    values = as_array(p).astype(np.float64, copy=False)
    before = np.asarray(shares, dtype=np.float64)
    if values.ndim != 2 or before.shape != values.shape[1:]:
        raise InputError(
            f"{before.size} shares for probabilities of shape {list(values.shape)}",
            field="shares",
            fixes="give the fitted calibrator's shares_, and its predict_proba(X)",
        )
    return values, before


def _checked_prior(prior: ArrayLike, shares: Array) -> Array:
    """Return the stated shares as float64 [C] that sum to one exactly."""
    after = np.asarray(prior, dtype=np.float64)
    message = ""
    fix = "give each class's share in the order of the columns"
    if after.shape != shares.shape:
        message = f"shape {list(after.shape)} for {len(shares)} classes"
    elif not (np.isfinite(after).all() and after.min() >= 0):
        message = "shares are numbers from 0 to 1"
    elif abs(after.sum() - 1) > TOLERANCE:
        message = f"the shares sum to {after.sum():.6g}, not 1"
        fix = "divide them by their sum"
    elif ((shares == 0) & (after > 0)).any():
        column = int(((shares == 0) & (after > 0)).argmax())
        message = f"class {column} has no calibration point, so its probability is a guess"
        fix = "fit with points of it"
    if message:
        raise InputError(message, field="prior", fixes=fix)
    return after / after.sum()
