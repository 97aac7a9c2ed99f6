"""Calibrated probabilities where classes are more or less frequent than at the calibration.

If only the shares of the classes change, and not what points of a class look like (label shift), a
probability p_c that was calibrated under the shares π becomes p_c π'_c / π_c, normalised, under the
shares π' (Elkan 2001): `reweight`. If π' is not known, `estimate_prior` finds the shares under
which the answers to new points without labels are most likely (expectation maximisation, Saerens et
al. 2002).

Two kinds of noise make the estimate uncertain (delta method, both from the observed information):

- that of the n new points,
- that of the N calibration points. They determined the probabilities, so these have errors. The
  errors are taken as those of a map softmax(β ln p + b) that is fitted to N points by maximum
  likelihood. With b = 0 its errors are smaller, but then those of the shares π come in.

A map that cannot be right for any parameters, or points that also look different, make errors
that no interval knows of.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from utility_calibration.metrics.arrays import Array, OtherArray, as_array, like
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

TOLERANCE = 1e-3  # of the sum of stated shares
ITERATIONS, CONVERGED = 10_000, 1e-9  # of expectation maximisation; largest change of a share
FLAT = 1e-10
"""An eigenvalue below this share of the largest is that of a direction without information."""


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
    p: ArrayLike | OtherArray,
    shares: ArrayLike,
    n_points: float,
    confidence: float = 0.95,
) -> PriorEstimate:
    """Estimate the shares of the classes among points without labels, with intervals.

    >>> p = [[0.9, 0.1]] * 70 + [[0.1, 0.9]] * 30  # of a fit to both classes in equal shares
    >>> prior = estimate_prior(p, shares=[0.5, 0.5], n_points=1000)
    >>> prior.shares.round(2), prior.lower.round(2), prior.upper.round(2)
    (array([0.75, 0.25]), array([0.63, 0.13]), array([0.87, 0.37]))

    Args:
        p: [n, C], what a fitted calibrator predicts for the points.
        shares: [C], the shares among the calibration points: `calibrator.shares_`. Classes of which
            there was no point keep the share 0.
        n_points: the number of calibration points: `calibrator.n_points_`.
        confidence: of each class's interval, between 0 and 1.

    Raises:
        InputError: a confidence outside (0, 1), no calibration point, or not one share per class.
    """
    if not 0 < confidence < 1:
        raise InputError(confidence, field="confidence", fixes="give a number between 0 and 1")
    if not n_points > 0:
        fix = "give the fitted calibrator's n_points_"
        raise InputError(f"{n_points}, expected a number above 0", field="n_points", fixes=fix)
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
    variances = np.diag(_covariance(likelihoods, before, prior, n_points)).clip(min=0)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(variances)
    return PriorEstimate(prior, (prior - half).clip(min=0), (prior + half).clip(max=1))


def _covariance(likelihoods: Array, before: Array, prior: Array, n_points: float) -> Array:
    """Return the covariance [C, C] of the estimated shares `prior` [C].

    The estimate solves mean(s) = 1 for the scores s_c = l_c / Σ_k l_k π'_k of the likelihoods l
    [n, C]. So it changes by `response` times the change of mean(s), within the shares of sum one.
    """
    n, classes = likelihoods.shape
    scores = likelihoods / (likelihoods @ prior)[:, None]
    information = scores.T @ scores / n
    tangent = np.eye(classes) - 1 / classes  # shares sum to one
    response = np.linalg.pinv(tangent @ information @ tangent, hermitian=True)

    # The calibrator's parameters: an offset of every class's ln p, and ln β.
    joint = likelihoods * before
    totals = joint.sum(axis=1)
    p = joint / totals[:, None]  # under the shares of the calibration points
    log_p = np.log(p.clip(min=LIKELIHOOD_FLOOR))
    posterior = scores * prior
    centred = log_p - (posterior * log_p).sum(axis=1, keepdims=True)
    of_offsets = np.diag(scores.mean(axis=0)) - information * prior
    of_slope = (scores * centred).mean(axis=0)
    slopes = response @ tangent @ np.column_stack([of_offsets, of_slope])

    # New points stand for calibration points, in proportion to how frequent these are there.
    weights = totals / (likelihoods @ prior)
    errors = np.linalg.pinv(_information(p, log_p, weights), rcond=FLAT, hermitian=True)
    covariance: Array = response / n + slopes @ errors @ slopes.T / n_points
    return covariance


def _information(p: Array, log_p: Array, weights: Array) -> Array:
    """Return the mean information of a labelled point about b and ln β at (0, 0): [C + 1, C + 1].

    The map is softmax(β ln p + b), and the points [n, C] have weights [n].
    """
    shares = weights / weights.sum()
    centred = log_p - (p * log_p).sum(axis=1, keepdims=True)
    weighted = p * shares[:, None]
    of_offsets = np.diag(weighted.sum(axis=0)) - weighted.T @ p
    of_slope = (weighted * centred * log_p).sum()
    mixed = (weighted * centred).sum(axis=0)
    information: Array = np.block([[of_offsets, mixed[:, None]], [mixed[None], of_slope]])
    return information


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
