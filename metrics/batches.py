"""The points of a scorecard with the metrics to compute on them, all together or in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from .kernels.draws import Draws
from .measurement import Options
from .registry import Metric
from .samples import Sample
from .users import Users, users_to_redraw, users_to_resample

MOST_POINTS_FOR_USERS = 50_000
"""The most points that are resampled for sampled users, whose work grows with n times B. With more,
the spread between splits is informative enough."""


@dataclass(frozen=True)
class Batch(Sample):
    """Points, and the metrics to compute on them.

    Attributes:
        metrics: the metrics to compute.
        users: the sampled users that are measured.
        has_curves: whether all of the users' errors are asked for, not only their quantiles.
    """

    metrics: Sequence[Metric] = ()
    users: Users = field(default_factory=dict)
    has_curves: bool = True

    @classmethod
    def of(cls, sample: Sample, metrics: Sequence[Metric], users: Users) -> Batch:
        """Return the batch of these points."""
        fields = {name: getattr(sample, name) for name in Sample.__dataclass_fields__}
        return cls(**fields, metrics=metrics, users=users)

    @property
    def families(self) -> Sequence[str]:
        """The families of the sampled users whose curves are asked for."""
        return tuple(self.users) if self.has_curves else ()

    def to_redraw(self, options: Options) -> Self:
        """Return the batch with what is measured under drawn labels: what they make positive."""
        metrics = [metric for metric in self.metrics if metric.has_floor]
        return replace(self, metrics=metrics, users=users_to_redraw(self.users, self, options))

    def to_resample(self, n_points: int, options: Options) -> Self:
        """Return the batch with what is measured under resampled points, of `n_points` in all."""
        metrics = [metric for metric in self.metrics if metric.resampled]
        if n_points > MOST_POINTS_FOR_USERS:
            metrics = [metric for metric in metrics if not metric.sampled]
        users = users_to_resample(self.users, options)
        return replace(self, metrics=metrics, users=users, has_curves=False)


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
    return [replace(whole, metrics=others, users={}), *map(of_utilities.at, batches)]
