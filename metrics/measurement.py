"""What is measured: the points and their outcomes, and the numbers that several metrics share.

The outcomes are the labels, labels drawn from the forecast, or weights of resampled points. The
order of the predicted utilities depends on none of them, so all draws share every sort, and the
binned errors share those of UC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metrics.binned import Weights, interval_and_binned_errors
from metrics.forecast import Forecast, Outcomes
from metrics.kernels.ranks import sorted_rows
from metrics.resampling import LARGEST, redrawn_outcomes, resampled_weights
from metrics.utilities.base import UtilityClass
from metrics.utilities.payoffs import ClassWise, GivenPayoffs, Linear, Rank, TopClass
from metrics.validation import InputError

FAMILIES = ("linear", "rank")
"""The sampled users of the eCDFs, paid by class and by rank."""


@dataclass(frozen=True)
class Options:
    """What the metrics depend on besides forecast and labels.

    utilities: M, the users that are sampled per family (paid by class, by rank); 0 for none.
    floor_utilities: how many of them, the first, are measured under drawn labels and resampled
        points; floors and intervals of their quantiles come from these.
    utility_seed: of the sample of utilities, the same for every method and split.
    bins, class_weights: of the binned errors.
    exponents: grid of γ for `u_dcg`.
    similarity: [C, C], adds `u_w2v`.
    own: your utility classes by key; each adds the largest UC of its class.
    utility_batch: take the utility metrics and the eCDFs as means over disjoint seeded batches of
        this many points or a few more, all points used; None, or where there are fewer than two
        batches: over all points at once.

    Raises:
        InputError: a number is out of range.
    """

    utilities: int = 1500
    floor_utilities: int = 1000
    utility_seed: int = 0
    bins: int = 15
    class_weights: Weights = "uniform"
    exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2)
    similarity: Any = None
    own: Mapping[str, UtilityClass] = field(default_factory=dict)
    utility_batch: int | None = None

    def __post_init__(self) -> None:
        if self.utilities < 0:
            raise InputError(f"utilities: {self.utilities}, expected at least 0")
        for name in ("floor_utilities", "utility_batch"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{name}: {number}, expected at least 1")


@dataclass(frozen=True)
class Noise:
    """How the noise of the metrics is estimated.

    floor_repetitions: label draws R for the noise floors.
    bootstrap_repetitions: resamplings B of the points; none beyond 50,000 points.
    noise_seed: of the draws, the same for every method (paired), and of the batches.
    confidence: of the certificates.
    points: [n], the number of each point in the whole data set: in all splits a point then draws
        its label from the same uniforms. 0 … n - 1 if not given.
    population: points of the whole data set, which the bootstrap resamples; n if not given.

    Raises:
        InputError: a number is out of range.
    """

    floor_repetitions: int = 400
    bootstrap_repetitions: int = 0
    noise_seed: int = 0
    confidence: float = 0.95
    points: Any = None
    population: int | None = None

    def __post_init__(self) -> None:
        for name in ("floor_repetitions", "bootstrap_repetitions"):
            if getattr(self, name) < 0:
                raise InputError(f"{name}: {getattr(self, name)}, expected at least 0")


@dataclass(frozen=True)
class Measurement:
    """A forecast, R outcomes of it and the options: the input of every metric.

    Whatever several metrics need is computed once and kept.

    users: the sampled users, "linear" (paid by class) and "rank"; empty if none are sampled.
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
        return self._with_bins(ClassWise())

    @cached_property
    def top_class(self) -> tuple[Tensor, Tensor]:
        """UC and binned error of the most probable class: [R, 1] each."""
        return self._with_bins(TopClass())

    def _with_bins(self, utilities: UtilityClass) -> tuple[Tensor, Tensor]:
        given = self.forecast, self.outcomes, self.options.bins
        return interval_and_binned_errors(utilities, *given)

    def errors(self, key: str, utilities: UtilityClass) -> Tensor:
        """UC of each utility of the class behind `key`, a metric or a family of users: [R, m]."""
        if type(utilities) is ClassWise:
            return self.class_wise[0]
        if type(utilities) is TopClass:
            return self.top_class[0]
        if key not in self._errors:
            self._errors[key] = utilities.errors(self.forecast, self.outcomes)
        return self._errors[key]

    def sorted_errors(self, family: str) -> Tensor:
        """UC of the users of "linear" or "rank" in ascending order: [R, M]."""
        if family not in self._sorted:
            self._sorted[family] = sorted_rows(self.errors(family, self.users[family]))
        return self._sorted[family]

    def quantile(self, family: str, level: float) -> Tensor:
        """The quantile over users of "linear" or "rank", interpolated as `torch.quantile`: [R]."""
        ordered = self.sorted_errors(family)
        place = level * (ordered.shape[1] - 1)
        below, above = ordered[:, math.floor(place)], ordered[:, math.ceil(place)]
        return below.lerp(above, place - math.floor(place))


class Sample(NamedTuple):
    """Points that a metric is measured on, and their numbers in the whole data set."""

    forecast: Forecast
    labels: Tensor
    points: Tensor


class Measured(NamedTuple):
    """The whole sample, and the batches that utility metrics are means over, with R outcomes."""

    whole: Measurement
    batches: Sequence[Measurement]

    def sorted_errors(self, family: str) -> Tensor:
        """The sampled users' errors in ascending order, [R, M], means over the batches."""
        return torch.stack([batch.sorted_errors(family) for batch in self.batches]).mean(dim=0)


class Samples(NamedTuple):
    """The points of a scorecard: `batches` is [whole] where everything is measured at once."""

    whole: Sample
    batches: Sequence[Sample]
    options: Options

    @classmethod
    def of(cls, whole: Sample, options: Options, seed: int) -> Samples:
        """Cut as many random batches as hold `utility_batch` points each."""
        n = len(whole.labels)
        count = 1 if options.utility_batch is None else n // options.utility_batch
        if count <= 1:
            return cls(whole, [whole], options)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        parts = [part.sort().values for part in order.to(whole.labels.device).tensor_split(count)]
        p, y, points = whole.forecast.probabilities, whole.labels, whole.points
        return cls(whole, [Sample(Forecast(p[i]), y[i], points[i]) for i in parts], options)

    @property
    def in_batches(self) -> bool:
        """Whether utility metrics are means over batches."""
        return self.batches[0] is not self.whole

    def observed(self) -> Measured:
        """All sampled users under the true labels: one outcome."""
        return next(
            self._measured(
                lambda sample: iter([sample.forecast.outcomes(sample.labels)]),
                self.options.utilities,
            )
        )

    def redrawn(self, noise: Noise) -> Iterator[Measured]:
        """The first sampled users under labels drawn from the forecast."""
        repetitions, seed, n = noise.floor_repetitions, noise.noise_seed, len(self.whole.labels)
        return self._measured(
            lambda sample: redrawn_outcomes(sample.forecast, sample.points, repetitions, seed, n),
            self.options.floor_utilities,
        )

    def resampled(self, noise: Noise) -> Iterator[Measured]:
        """The first sampled users under the weights of resampled points."""
        n = len(self.whole.labels)
        population = n if noise.population is None else noise.population
        repetitions = noise.bootstrap_repetitions if population <= LARGEST else 0

        def outcomes(sample: Sample) -> Iterator[Outcomes]:
            given = sample.points, population, repetitions, noise.noise_seed, n
            for weights in resampled_weights(*given):
                yield sample.forecast.outcomes(sample.labels, weights)

        return self._measured(outcomes, self.options.floor_utilities)

    def _measured(
        self, outcomes_of: Callable[[Sample], Iterator[Outcomes]], users: int
    ) -> Iterator[Measured]:
        """Draw by draw in step: a point has the same outcome in the whole and in its batch."""
        samples = [self.whole, *self.batches] if self.in_batches else [self.whole]
        sampled = _sampled_users(self.whole.forecast.classes, self.options, users)
        for outcomes in zip(*map(outcomes_of, samples), strict=True):
            measured = [
                Measurement(sample.forecast, outcome, self.options, sampled)
                for sample, outcome in zip(samples, outcomes, strict=True)
            ]
            yield Measured(measured[0], measured[-len(self.batches) :])


def _sampled_users(classes: int, options: Options, count: int) -> dict[str, GivenPayoffs]:
    """The first `count` users of each family that `options` sample; none if none are sampled."""
    if not options.utilities:
        return {}
    size, seed = (options.utilities, classes), options.utility_seed
    return {
        "linear": Linear(Linear.sample(*size, seed).matrix[:count]),
        "rank": Rank(Rank.sample(*size, seed + 1).matrix[:count]),
    }
