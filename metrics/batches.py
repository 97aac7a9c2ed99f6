"""The points of a scorecard with the metrics to compute on them, all together or in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .kernels.draws import Draws
from .registry import Metric
from .samples import Sample

MOST_POINTS_FOR_USERS = 50_000
"""The most points that are resampled for sampled users, whose work grows with n times B. With more,
the spread between splits is informative enough."""


@dataclass(frozen=True)
class Batch(Sample):
    """Points, and the metrics to compute on them.

    Attributes:
        metrics: the metrics to compute.
        families: families of the sampled users, "linear" and "rank", or none.
    """

    metrics: Sequence[Metric] = ()
    families: Sequence[str] = ()

    @classmethod
    def of(cls, sample: Sample, metrics: Sequence[Metric], families: Sequence[str]) -> Batch:
        """Return the batch of these points."""
        fields = {name: getattr(sample, name) for name in Sample.__dataclass_fields__}
        return cls(**fields, metrics=metrics, families=families)

    def with_a_floor(self) -> Self:
        """Return the batch with those metrics that chance alone makes positive."""
        return replace(self, metrics=[metric for metric in self.metrics if metric.has_floor])

    def to_resample(self, n_points: int) -> Self:
        """Return the batch with what is measured under resampled points, of `n_points` in all."""
        metrics = [metric for metric in self.metrics if metric.resampled]
        if n_points > MOST_POINTS_FOR_USERS:
            metrics = [metric for metric in metrics if not metric.sampled]
        return replace(self, metrics=metrics, families=())  # nobody asks for the users' curves


def in_batches(whole: Batch, utility_batch: int | None, seed: int) -> list[Batch]:
    """Return the whole batch, and those after it if utility metrics are means over batches."""
    n_points = whole.forecast.n
    count = 1 if utility_batch is None else n_points // utility_batch
    if count <= 1:
        return [whole]
    order = Draws(seed).permutation(n_points)
    batches = [np.sort(rows) for rows in np.array_split(order, count)]
    of_utilities = replace(whole, metrics=[m for m in whole.metrics if m.of_utilities])
    others = [metric for metric in whole.metrics if not metric.of_utilities]
    return [replace(whole, metrics=others, families=()), *map(of_utilities.at, batches)]
