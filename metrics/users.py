"""The sampled users behind the eCDFs, and the few of them that are measured many times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from .arrays import Array
from .kernels.threads import product
from .measurement import Options
from .priors import check_shares, linear_users, rank_users
from .samples import Sample
from .utilities.linear_and_rank import Linear, Rank

ENOUGH = 1 << 20
"""So many probabilities tell how noisy users are: 10,000 points of a hundred classes."""
DIGITS = 12
"""Decimals of a user's noise. Users whose noise differs by rounding alone keep their order."""
Users = Mapping[str, Linear | Rank]
"""By family: "linear" (paid by class) and "rank"; empty if there are none."""


def sampled_users(classes: int, options: Options) -> Users:
    """Return all sampled users of each family; {} if `options` sample none."""
    if not options.utilities:
        return {}
    shares = None
    if options.prior == "frequent":
        shares = tuple(check_shares(options.class_shares, classes).tolist())
    return _drawn(options.prior, options.utilities, classes, options.utility_seed, shares)


@lru_cache(maxsize=1)  # all splits and methods of a benchmark have the same users
def _drawn(
    prior: str, utilities: int, classes: int, seed: int, class_shares: tuple[float, ...] | None
) -> Users:
    return {
        "linear": linear_users(prior, utilities, classes, seed, class_shares),
        "rank": rank_users(prior, utilities, classes, seed + 1),
    }


def users_to_resample(users: Users, options: Options) -> Users:
    """Return the users that are measured under resampled points, evenly spread by the variance of
    their payoffs.

    They are the same for all forecasts, so that differences between methods are of the same users.
    """
    count = options.bootstrap_utilities
    return {
        family: evenly_spread(some, some.matrix.var(axis=1, ddof=1), count)
        for family, some in users.items()
    }


def users_to_redraw(users: Users, sample: Sample, options: Options) -> Users:
    """Return the users that are measured under drawn labels, evenly spread by their noise.

    Few users are enough, because UC under drawn labels is about the noise of the user's utility
    under the forecast times a number that hardly depends on the user. Those who are paid by rank
    differ in little else, so half as many of them are enough.

    Measured with 300 linear and 150 rank users, spread by their noise, beside 500 and 500, spread
    by the variance of their payoffs: how much larger q95 of the floor is than with all 1,500.

        classes      300 and 150      500 and 500
        up to 10     no further from the floor of 1,500 than 500 and 500
        100          1.0 %            .6 %
        1,000        up to 2.4 %      1.4 %
    """
    counts = {"linear": options.floor_utilities, "rank": -(-options.floor_utilities // 2)}
    return {
        family: evenly_spread(some, noise_of(some, sample).round(DIGITS), counts[family])
        for family, some in users.items()
    }


def noise_of(users: Linear | Rank, sample: Sample) -> Array:
    """Return the mean variance of each user's utility if labels are drawn from the forecast: [M].

    That is Σ_j q_j a_j² - aᵀ S a for payoffs a, with the mean q of the rows of probabilities by
    class, or of ranked ones, and their mean products S. Of many points, some in equal steps serve.
    """
    forecast, weights = sample.forecast, sample.weights
    rows = slice(0, forecast.n, max(1, forecast.probabilities.size // ENOUGH))
    part = forecast if rows.step == 1 else forecast.at(rows)
    values = part.probabilities if users.coordinate == "class" else part.ranked
    shares = np.ones(len(values)) if weights is None else np.square(weights[rows])
    shares = shares / max(shares.sum(), np.finfo(float).tiny)
    weighted, payoffs = values * shares[:, None], users.matrix
    of_squares = product(np.square(payoffs), weighted.sum(axis=0)[:, None])[:, 0]
    products = product(np.ascontiguousarray(values.T), weighted)
    return of_squares - (product(payoffs, products) * payoffs).sum(axis=1)


def evenly_spread(users: Linear | Rank, values: Array, count: int) -> Linear | Rank:
    """Return `count` of the users, or all: evenly spread in the order of `values` [M].

    The first and the last are among them, so quantiles are at the same places as those of all.
    """
    if count >= len(users.matrix):
        return users
    places = np.linspace(0, len(users.matrix) - 1, count).round().astype(np.int64)
    chosen = values.argsort(kind="stable")[places]
    return type(users)(users.matrix[chosen])
