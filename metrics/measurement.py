"""One forecast under several outcomes: what the metrics share, computed once.

The outcomes are draws of the labels or weights of the points (metrics.forecast.Outcomes). The order
of the predicted utilities depends on neither, so all draws share every sort, and the binned errors
share those of UC. Those of the sampled users, the most by far, are shared by observed, drawn and
resampled outcomes as well.
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
from metrics.kernels.row_sort import ascending_order, sorted_rows
from metrics.utilities.base import Block, UtilityClass, errors_of
from metrics.utilities.class_wise import ClassWise
from metrics.utilities.linear import Linear
from metrics.utilities.payoffs import GivenPayoffs
from metrics.utilities.rank import Rank
from metrics.utilities.top_k import TopClass

FAMILIES = ("linear", "rank")
"""The sampled users of the eCDFs, paid by class and by rank, by their name in `Measurement`."""
BYTES = 16
"""Of a prediction, and of its point's number in their order, at most."""
LARGEST_SHARED = 720 << 20
"""Bytes that both families may keep: 15,000 points and 1,500 users take them."""


@dataclass(frozen=True)
class Options:
    """What the metrics depend on besides forecast and labels; see `metrics.scorecard`."""

    utilities: int = 1500
    utility_seed: int = 0
    bins: int = 15
    class_weights: Weights = "uniform"
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2)
    similarity: Any = None
    own: Mapping[str, UtilityClass] = field(default_factory=dict)


@dataclass(frozen=True)
class Users:
    """A family of sampled users and their forecast.

    is_shared: outcomes share predictions and sorts, which are kept; else each has its own made.
    """

    utilities: GivenPayoffs
    forecast: Forecast
    is_shared: bool
    _kept: list[Block] = field(default_factory=list, init=False, repr=False)

    def errors(self, outcomes: Outcomes) -> Tensor:
        """UC of each user under each outcome: [R, M]."""
        if not self.is_shared:
            return self.utilities.errors(self.forecast, outcomes)
        if not self._kept:
            blocks = self.utilities.tied_blocks(self.forecast, outcomes)
            self._kept[:] = [b._replace(predicted=b.predicted.clone()) for b in blocks]
        if outcomes.draws > 1 and self._kept[0].order is None:
            self._kept[:] = [b._replace(order=ascending_order(b.predicted)) for b in self._kept]
        codes = self.utilities.codes(outcomes)
        return errors_of((block._replace(codes=codes) for block in self._kept), outcomes)


def kept_bytes(n: int, users: int) -> int:
    """What the families of that many users keep of n points; 0 where it would be too much."""
    needed = len(FAMILIES) * users * n * BYTES
    return needed if needed <= LARGEST_SHARED else 0


def sampled_users(forecast: Forecast, options: Options, kept: bool = True) -> dict[str, Users]:
    """The users of "linear", paid by class, and of "rank", paid by rank; none if none are asked.

    kept: whether they may keep predictions, up to `LARGEST_SHARED` bytes.
    """
    if not options.utilities:
        return {}
    size = options.utilities, forecast.classes
    families = {
        "linear": Linear.sample(*size, options.utility_seed),
        "rank": Rank.sample(*size, options.utility_seed + 1),
    }
    is_shared = kept and kept_bytes(forecast.n, options.utilities) > 0
    return {name: Users(family, forecast, is_shared) for name, family in families.items()}


@dataclass(frozen=True)
class Measurement:
    """A forecast, R outcomes of it and the options: the input of every metric.

    users: `sampled_users` of the forecast, which its measurements share.
    """

    forecast: Forecast
    outcomes: Outcomes
    options: Options
    users: Mapping[str, Users]
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
        return self.users["linear"].errors(self.outcomes)

    @cached_property
    def rank(self) -> Tensor:
        """UC of the sampled users paid by rank: [R, M]."""
        return self.users["rank"].errors(self.outcomes)

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
