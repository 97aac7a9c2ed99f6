"""One forecast under several outcomes: what the metrics share, computed once.

The outcomes are draws of the labels or weights of the points (metrics.forecast.Outcomes). The order
of the predicted utilities depends on neither, so all draws share every sort, and the binned errors
share those of UC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor

from metrics.binned import Weights, interval_and_binned_errors
from metrics.forecast import Forecast, Outcomes
from metrics.kernels.row_sort import sorted_rows
from metrics.utilities.base import UtilityClass
from metrics.utilities.payoffs import ClassWise, GivenPayoffs, Linear, Rank, TopClass

FAMILIES = ("linear", "rank")
"""The sampled users of the eCDFs, paid by class and by rank, by their name in `Measurement`."""


@dataclass(frozen=True)
class Options:
    """What the metrics depend on besides forecast and labels; see `metrics.scorecard`."""

    utilities: int = 1500
    floor_utilities: int = 1000
    utility_seed: int = 0
    bins: int = 15
    class_weights: Weights = "uniform"
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2)
    similarity: Any = None
    own: Mapping[str, UtilityClass] = field(default_factory=dict)


def sampled_users(classes: int, options: Options, count: int) -> dict[str, GivenPayoffs]:
    """The first `count` users of each family that `options` sample; none if none are sampled."""
    if not options.utilities:
        return {}
    size, seed = (options.utilities, classes), options.utility_seed
    return {
        "linear": Linear(Linear.sample(*size, seed).matrix[:count]),
        "rank": Rank(Rank.sample(*size, seed + 1).matrix[:count]),
    }


@dataclass(frozen=True)
class Measurement:
    """A forecast, R outcomes of it and the options: the input of every metric.

    users: those of `sampled_users` that are asked.
    """

    forecast: Forecast
    outcomes: Outcomes
    options: Options
    users: Mapping[str, UtilityClass]
    _errors: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)
    _sorted: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def class_wise(self) -> tuple[Tensor, Tensor]:
        """UC and binned error of each class: [R, C] each."""
        return interval_and_binned_errors(
            ClassWise(), self.forecast, self.outcomes, self.options.bins
        )

    @cached_property
    def top_class(self) -> tuple[Tensor, Tensor]:
        """UC and binned error of the most probable class: [R, 1] each."""
        return interval_and_binned_errors(
            TopClass(), self.forecast, self.outcomes, self.options.bins
        )

    @cached_property
    def linear(self) -> Tensor:
        """UC of the sampled users paid by class: [R, M]."""
        return self.users["linear"].errors(self.forecast, self.outcomes)

    @cached_property
    def rank(self) -> Tensor:
        """UC of the sampled users paid by rank: [R, M]."""
        return self.users["rank"].errors(self.forecast, self.outcomes)

    def sorted_errors(self, family: str) -> Tensor:
        """UC of the users of "linear" or "rank" in ascending order: [R, M], sorted once."""
        if family not in self._sorted:
            self._sorted[family] = sorted_rows(getattr(self, family))
        return self._sorted[family]

    def quantile(self, family: str, level: float) -> Tensor:
        """The quantile over users of "linear" or "rank", interpolated as `torch.quantile`: [R]."""
        ordered = self.sorted_errors(family)
        place = level * (ordered.shape[1] - 1)
        below, above = ordered[:, math.floor(place)], ordered[:, math.ceil(place)]
        return below.lerp(above, place - math.floor(place))

    def errors(self, key: str, utilities: UtilityClass) -> Tensor:
        """UC of each utility of the class behind metric `key`: [R, m]."""
        if type(utilities) is ClassWise:
            return self.class_wise[0]
        if type(utilities) is TopClass:
            return self.top_class[0]
        if key not in self._errors:
            self._errors[key] = utilities.errors(self.forecast, self.outcomes)
        return self._errors[key]
