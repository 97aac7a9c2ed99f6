"""Calibrated probabilities where classes are more or less frequent than at the calibration.

If only the shares of the classes change, and not what points of a class look like (label shift), a
probability p_c that was calibrated under the shares π becomes p_c π'_c / π_c, normalised, under the
shares π' (Elkan 2001). If π' is not known, `estimated_prior` finds the shares under which the
answers to new points without labels are most likely (expectation maximisation, Saerens et al.
2002). Its standard errors come from the observed information. They cover the noise of the new
points, but not errors of the calibrator: too few calibration points, or points that also look
different.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.validation import InputError, as_array

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


class PriorShift:
    """What every calibrator inherits for points whose classes have other shares.

    A fitted calibrator has `classes_` and `shares_`, the classes' shares among its points [C], and
    a copy made by `with_prior` has `prior_` [C].
    """

    classes_: NDArray[Any]
    shares_: NDArray[np.float64]
    prior_: NDArray[np.float64]

    def with_prior(self, prior: ArrayLike | Mapping[Any, float] | None) -> Self:
        """Return a copy for points among which the classes have the shares `prior`.

        `prior` [C] is in the order of `classes_`, or a dict by class; None is as at the fit. The
        copy predicts, is saved and is exported with these shares. `InputError` if they cannot be
        used, or the calibrator is of a release that did not store `shares_`.
        """
        shifted = copy(self)
        shifted.__dict__.pop("prior_", None)
        if prior is not None:
            shifted.prior_ = checked_prior(prior, self.classes_, self._known_shares())
        return shifted

    def estimate_prior(self, X: ArrayLike, confidence: float = 0.95) -> PriorEstimate:
        """Estimate the classes' shares among points X [n, C] without labels, with intervals."""
        p = as_array(self.with_prior(None).predict_proba(X))
        return estimated_prior(p, self._known_shares(), confidence)

    @abstractmethod
    def predict_proba(self, X: ArrayLike) -> Array | NDArray[np.float64]:
        """Return probabilities [n, C]."""

    def _shifted(self, p: Array) -> Array:
        if not hasattr(self, "prior_"):
            return p
        return reweighted(p, ratios(self.prior_, self.shares_))

    def _shifted_module(self, module: Any, dtype: Any) -> Any:
        if not hasattr(self, "prior_"):
            return module
        from .modules import Reweighted

        return Reweighted(module, ratios(self.prior_, self.shares_), dtype)

    def _known_shares(self) -> NDArray[np.float64]:
        check_is_fitted(self, "classes_")
        if not hasattr(self, "shares_"):
            wrong = "this calibrator was saved without the shares of its classes"
            raise InputError(wrong, field="prior", fixes="fit it again")
        return self.shares_


def shares_of(labels: Array, classes: int, weights: Array | None = None) -> NDArray[np.float64]:
    """Return the share of each class among `labels` [n], weighted if asked: [C]."""
    counts = np.bincount(labels, weights, minlength=classes).astype(np.float64)
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def checked_prior(
    prior: ArrayLike | Mapping[Any, float], classes: NDArray[Any], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return stated shares [C] in the order of `classes`; `InputError` if they are not usable.

    `prior` holds them in that order, or by class. `shares` are those at the calibration.
    """
    if isinstance(prior, Mapping):
        named = {str(name): share for name, share in prior.items()}
        known = [str(name) for name in classes.tolist()]
        if named.keys() != set(known):
            wrong = f"the classes named are {', '.join(named)}"
            raise InputError(wrong, field="prior", fixes=f"name each once: {', '.join(known)}")
        prior = [named[name] for name in known]
    given = np.asarray(prior, dtype=np.float64)
    wrong, fix = "", "give each class's share in the order of classes_, or a dict by class"
    if given.shape != classes.shape:
        wrong = f"shape {list(given.shape)} for {len(classes)} classes"
    elif not (np.isfinite(given).all() and given.min() >= 0):
        wrong = "shares are numbers from 0 to 1"
    elif abs(given.sum() - 1) > TOLERANCE:
        wrong, fix = f"the shares sum to {given.sum():.6g}, not 1", "divide them by their sum"
    elif (odd := np.flatnonzero((shares == 0) & (given > 0))).size:
        wrong = f"class {classes[odd[0]]} has no calibration point, so its probability is a guess"
        fix = "fit with points of it"
    if wrong:
        raise InputError(wrong, field="prior", fixes=fix)
    return given / given.sum()


def ratios(prior: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return π'_c / π_c [C]; 0 for a class without calibration points."""
    return np.divide(prior, shares, out=np.zeros_like(prior), where=shares > 0)


def reweighted(p: Array, factors: Array) -> Array:
    """Return p ⊙ `factors` [C], each row scaled to its former sum: [n, C].

    A row that would be zero, because only impossible classes had a probability, stays as it is.
    """
    moved = p * factors
    total = moved.sum(axis=1, keepdims=True)
    scaled = moved * (p.sum(axis=1, keepdims=True) / total.clip(min=np.finfo(p.dtype).tiny))
    return np.where(total > 0, scaled, p)


def estimated_prior(
    p: NDArray[np.float64], shares: NDArray[np.float64], confidence: float
) -> PriorEstimate:
    """Estimate the shares of points with calibrated probabilities `p` [n, C].

    `shares` [C] are those at the calibration. Classes of which it had no point keep the share 0.
    """
    if not 0 < confidence < 1:
        raise InputError(confidence, field="confidence", fixes="give a number between 0 and 1")
    likelihoods = p * ratios(np.ones_like(shares), shares)  # up to a factor per point
    prior = shares
    for _ in range(ITERATIONS):
        joint = likelihoods * prior
        update = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        change, prior = np.abs(update - prior).max(), update
        if change < CONVERGED:
            break
    scores = likelihoods / (likelihoods @ prior)[:, None]
    tangent = np.eye(len(prior)) - 1 / len(prior)  # shares sum to one
    information = tangent @ (scores.T @ scores) @ tangent
    variances = np.diag(np.linalg.pinv(information, hermitian=True)).clip(min=0)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(variances)
    return PriorEstimate(prior, (prior - half).clip(min=0), (prior + half).clip(max=1))
