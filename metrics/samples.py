"""The points of one scorecard: all of them, and the batches that utility metrics are means over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from metrics.bootstrap import resampled_weights
from metrics.floor import redrawn_outcomes
from metrics.forecast import Forecast, Outcomes
from metrics.measurement import Measurement, Options, sampled_users
from metrics.registry import Metric
from metrics.validation import InputError


class Sample(NamedTuple):
    """Points that a metric is measured on, and their numbers in the whole data set."""

    forecast: Forecast
    labels: Tensor
    points: Tensor


class Measured(NamedTuple):
    """Whole sample and batches under the same R outcomes."""

    whole: Measurement
    batches: Sequence[Measurement]

    def value(self, metric: Metric) -> Tensor:
        """A metric under each outcome, [R]; those of utilities as means over the batches."""
        measured = self.batches if metric.of_utilities else [self.whole]
        return torch.stack([metric.value(one) for one in measured]).mean(dim=0)

    def sorted_errors(self, family: str) -> Tensor:
        """The sampled users' errors in ascending order, [R, M], means over the batches."""
        return torch.stack([one.sorted_errors(family) for one in self.batches]).mean(dim=0)


@dataclass(frozen=True)
class Samples:
    """One forecast's points, measured under true, redrawn and resampled outcomes."""

    whole: Sample
    batches: Sequence[Sample]
    options: Options

    @classmethod
    def of(cls, whole: Sample, options: Options, size: int | None, seed: int) -> Samples:
        """Cut as many random batches as hold `size` points each; None: all points at once."""
        if size is not None and size < 1:
            raise InputError(f"utility_batch: {size}, expected at least 1")
        n = len(whole.labels)
        count = n // size if size is not None else 1
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
        """Under the true labels: one outcome, and all sampled users."""
        true = self._measured(
            lambda one: iter([one.forecast.outcomes(one.labels)]), self.options.utilities
        )
        return next(true)

    def redrawn(self, repetitions: int, seed: int) -> Iterator[Measured]:
        """Under labels drawn from the forecast, as many draws at a time as fit.

        Of the sampled users the first `floor_utilities` are measured, here and in `resampled`.
        """
        n = len(self.whole.labels)
        return self._measured(
            lambda one: redrawn_outcomes(one.forecast, one.points, repetitions, seed, n),
            self.options.floor_utilities,
        )

    def resampled(self, repetitions: int, population: int, seed: int) -> Iterator[Measured]:
        """Under the weights of resampled points."""
        n = len(self.whole.labels)

        def outcomes(one: Sample) -> Iterator[Outcomes]:
            for weights in resampled_weights(one.points, population, repetitions, seed, n):
                yield one.forecast.outcomes(one.labels, weights)

        return self._measured(outcomes, self.options.floor_utilities)

    def _measured(
        self, outcomes_of: Callable[[Sample], Iterator[Outcomes]], users: int
    ) -> Iterator[Measured]:
        """Draw by draw in step: a point has the same outcome in the whole and in its batch."""
        samples = [self.whole, *self.batches] if self.in_batches else [self.whole]
        sampled = sampled_users(self.whole.forecast.classes, self.options, users)
        for outcomes in zip(*map(outcomes_of, samples), strict=True):
            measured = [
                Measurement(sample.forecast, some, self.options, sampled)
                for sample, some in zip(samples, outcomes, strict=True)
            ]
            yield Measured(measured[0], measured[-len(self.batches) :])
