"""The input of the metrics: a forecast, its outcomes, and options.

The outcomes are the labels, labels drawn from the forecast, or weights of resampled points. The
order of the predicted utilities depends on none of them. So all draws share every sort, and the
binned errors use the sorts of UC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .binned import Weights, interval_and_binned_errors
from .errors import InputError
from .forecast import Forecast, Outcomes
from .option_checks import (
    USUAL_CONFIDENCE,
    check_confidence,
    check_known,
    check_whole,
    draws_for,
)
from .priors import PRIORS, check_shares
from .utilities.base import UtilityClass
from .utilities.function import utility_of
from .utilities.standard import ClassWise, TopClass


@dataclass(frozen=True)
class Options:
    """What is measured of forecast and labels, and how much of it is noise.

    Args:
        utilities: M, the number of sampled users per family (paid by class, by rank); 0 for none.
        floor_utilities: only so many of those paid by class, and half as many of those paid by
            rank, are measured under drawn labels, for the floors of their quantiles.
        bootstrap_utilities: only so many of each are measured under resampled points, for the
            intervals of their quantiles (metrics/users.py).
        utility_seed: seed of the sampled users, the same for every method and split.
        prior: what the sampled users are paid, a name of `PRIORS` (metrics/priors.py).
        class_shares: [C], how frequent each class is, for the prior "frequent".
        bins, class_weights: number of bins and weights of the classes in the binned errors.
        exponents: grid of γ for `u_dcg`.
        similarity: [C, C], adds `u_w2v`.
        own: your utility classes by key; each adds the largest UC of its class.
        utility_batch: utility metrics and eCDFs are means over disjoint seeded batches of at least
            this many points, which together are all points. They use all points at once if this
            is None or there are fewer than two batches.
        floor_repetitions: number R of label draws for the noise floors.
        bootstrap_repetitions: number B of bootstrap samples of the points. Above 50,000 points the
            quantiles over sampled users are left out.
        noise_seed: seed of the draws, the same for every method (paired), and of the batches.
        confidence: confidence of the certificates; above .95 they need at least
            20 / (1 - confidence) repetitions.
    """

    utilities: int = 1500
    floor_utilities: int = 300
    bootstrap_utilities: int = 500
    utility_seed: int = 0
    prior: str = "uniform"
    class_shares: ArrayLike | None = None
    bins: int = 15
    class_weights: Weights = "uniform"
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2)
    similarity: ArrayLike | None = None
    own: Mapping[str, UtilityClass] = field(default_factory=dict)
    utility_batch: int | None = None
    floor_repetitions: int = 400
    bootstrap_repetitions: int = 0
    noise_seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        numbers = "it is the number of sampled users; give your own as own={'mine': TopK()}"
        least = {"utilities": 0, "floor_utilities": 1, "bootstrap_utilities": 1, "bins": 1}
        least |= {"floor_repetitions": 0, "bootstrap_repetitions": 0}
        for name, low in least.items():
            check_whole(getattr(self, name), name, low, numbers * (name == "utilities"))
        check_known([self.prior], PRIORS, "prior", "prior of users")
        if self.prior == "frequent":
            check_shares(self.class_shares)
        check_confidence(self.confidence)
        needed = draws_for(self.confidence)
        if self.confidence > USUAL_CONFIDENCE and 0 < self.floor_repetitions < needed:
            message = (
                f"{self.floor_repetitions} are too few for certificates at {self.confidence:g}"
            )
            fixes = [f"give floor_repetitions={needed}", "give a smaller confidence"]
            raise InputError(message, field="floor_repetitions", fixes=fixes)
        if not isinstance(self.own, Mapping):
            message = f"{type(self.own).__name__}, expected a dictionary"
            raise InputError(message, field="own", fixes="name each utility: own={'mine': TopK()}")
        own = {key: utility_of(utility) for key, utility in self.own.items()}
        object.__setattr__(self, "own", own)
        if self.utility_batch is not None:
            check_whole(self.utility_batch, "utility_batch", 1)


@dataclass(frozen=True)
class Measurement:
    """The input of every metric; values that several metrics need are computed once and kept.

    Attributes:
        forecast, outcomes, options: the forecast, R outcomes of it, and the options.
        users: the sampled users, "linear" (paid by class) and "rank"; empty if there are none.
    """

    forecast: Forecast
    outcomes: Outcomes
    options: Options
    users: Mapping[str, UtilityClass]
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def _once(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def with_bins(self, utilities: ClassWise | TopClass) -> tuple[Array, Array]:
        """Return UC and binned error of each class, or of the most probable one: [R, m] each."""
        arguments = utilities, self.forecast, self.outcomes, self.options.bins
        return self._once(utilities, lambda: interval_and_binned_errors(*arguments))

    def errors(self, utilities: UtilityClass) -> Array:
        """Return UC of each utility of a class, of which equal ones share the values: [R, m]."""
        if isinstance(utilities, ClassWise | TopClass):
            return self.with_bins(utilities)[0]
        return self._once(utilities, lambda: utilities.errors(self.forecast, self.outcomes))

    def sorted_errors(self, family: str) -> Array:
        """Return UC of the users of "linear" or "rank" in ascending order: [R, M]."""
        users = self.users[family]
        return self._once(("sorted", family), lambda: np.sort(self.errors(users), axis=1))

    def quantile(self, family: str, level: float) -> Array:
        """Return the quantile over users of "linear" or "rank", as `np.quantile` does: [R]."""
        ordered = self.sorted_errors(family)
        place = level * (ordered.shape[1] - 1)
        below, above = ordered[:, math.floor(place)], ordered[:, math.ceil(place)]
        share = place - math.floor(place)
        step = above - below
        return below + share * step if share < 0.5 else above - step * (1 - share)
