"""Who the sampled users are: distributions of payoff vectors on the unit sphere of the ∞-norm.

The paper draws users uniformly from {‖a‖_∞ = 1} (sec. 4). The other priors favour regions of this
sphere, so that a reader sees whether the order of calibrators depends on who the users are:

    uniform   one payoff is ±1, the others are uniform on [-1, 1]
    sparse    only one, two or three classes pay
    positive  the sizes of uniform payoffs: no class is a loss
    frequent  uniform payoffs over r for the r-th most frequent class, as in Zipf's law
    graded    log2(1 + r)^-γ for the class that the user puts at place r, γ uniform on [0.5, 2]

Linear users have a payoff for each class. Rank-based users have one for each rank, in falling
order. For them "sparse" means the first one, two or three ranks, "frequent" means at most 1/r for
rank r, and neither has losses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Array
from .errors import InputError
from .kernels.draws import Draws
from .option_checks import check_known
from .utilities.linear_and_rank import Linear, Rank, sample_unit_sphere_infinity
from .utilities.parameters import check_sample

MOST_PAYING = 3
"""The largest number of classes that pay a sparse user."""
EXPONENTS = (0.5, 2.0)
"""The range of γ of graded users; it is that of the grid of U_dcg."""


def linear_users(
    prior: str, count: int, classes: int, seed: int, class_shares: ArrayLike | None = None
) -> Linear:
    """Draw users who are paid by class.

    >>> linear_users("sparse", 2, classes=5, seed=0).matrix.round(2)
    array([[-0.65,  0.  , -1.  ,  0.  , -0.12],
           [ 1.  ,  0.  ,  0.  ,  0.  ,  0.  ]])

    Args:
        prior: one of `PRIORS`; "uniform" gives the users of `Linear.sample`, bit for bit.
        count, classes, seed: the number of users and of classes, and the seed of the draws.
        class_shares: [C], how frequent each class is; only the prior "frequent" needs it. Classes
            of equal shares keep their order.

    Raises:
        InputError: an unknown prior, or no share for each class where the prior needs them.
    """
    _check(prior, count, classes)
    if prior == "uniform":
        return Linear.sample(count, classes, seed)
    payoffs = PAYOFFS[prior](seed, count, classes, False)
    if prior == "frequent":
        payoffs = payoffs[:, _places(class_shares, classes)]
    return Linear(payoffs)


def rank_users(prior: str, count: int, classes: int, seed: int) -> Rank:
    """Draw users who are paid by the rank of the outcome, the better rank never less.

    Args and errors are those of `linear_users`; ranks need no shares.
    """
    _check(prior, count, classes)
    if prior == "uniform":
        return Rank.sample(count, classes, seed)
    payoffs = PAYOFFS[prior](seed, count, classes, True)
    return Rank(-np.sort(-payoffs, axis=1))


def check_shares(class_shares: ArrayLike | None, classes: int | None = None) -> Array:
    """Return the shares as float64 [C]; `InputError` unless they are finite numbers >= 0."""
    shares = np.asarray([] if class_shares is None else class_shares, dtype=np.float64)
    right_size = shares.ndim == 1 and len(shares) > 1 and classes in (None, len(shares))
    if not right_size or not np.isfinite(shares).all() or shares.min() < 0:
        raise InputError(
            "the prior 'frequent' needs how frequent each class is",
            field="class_shares",
            fixes="give one number >= 0 for each class, such as its share of the labels",
        )
    return shares


def _check(prior: str, count: int, classes: int) -> None:
    check_known([prior], PRIORS, "prior", "prior of users")
    check_sample(count, classes)


def _places(class_shares: ArrayLike | None, classes: int) -> NDArray[np.int64]:
    """Return the place of each class in the order of falling shares, from 0: [C]."""
    order = np.argsort(-check_shares(class_shares, classes), kind="stable")
    return np.argsort(order)


def _sparse(seed: int, count: int, classes: int, by_rank: bool) -> Array:
    """Classes are drawn at random; of ranks, the first ones pay, none of them a loss."""
    draws = Draws(seed)
    numbers = 1 + draws.below(min(MOST_PAYING, classes - 1), count, 1)
    places = _random_places(draws, count, classes)
    payoffs = np.where(places < numbers, draws.uniforms(count, classes) * 2 - 1, 0.0)
    signs = draws.below(2, count, 1) * 2.0 - 1
    payoffs = np.where(places == 0, signs, payoffs)
    return np.abs(payoffs) if by_rank else payoffs


def _positive(seed: int, count: int, classes: int, by_rank: bool) -> Array:
    return np.abs(sample_unit_sphere_infinity(count, classes, seed))


def _frequent(seed: int, count: int, classes: int, by_rank: bool) -> Array:
    """Payoffs by place in the order of frequency; of ranks, the first ones, none of them a loss."""
    payoffs = (Draws(seed).uniforms(count, classes) * 2 - 1) / np.arange(1, classes + 1)
    payoffs = payoffs / np.abs(payoffs).max(axis=1, keepdims=True)
    return np.abs(payoffs) if by_rank else payoffs


def _graded(seed: int, count: int, classes: int, by_rank: bool) -> Array:
    draws = Draws(seed)
    low, high = EXPONENTS
    exponents = low + (high - low) * draws.uniforms(count, 1)
    places = np.arange(classes) if by_rank else _random_places(draws, count, classes)
    return np.log2(2.0 + places) ** -exponents


def _random_places(draws: Draws, count: int, classes: int) -> NDArray[np.int64]:
    """Return `count` random orders of the classes: the place of each class, from 0."""
    return draws.uniforms(count, classes).argsort(axis=1, kind="stable")


PAYOFFS: dict[str, Callable[[int, int, int, bool], Array]] = {
    "sparse": _sparse,
    "positive": _positive,
    "frequent": _frequent,
    "graded": _graded,
}
PRIORS = ("uniform", *PAYOFFS)
"""The names of all priors; the first one is the paper's."""
