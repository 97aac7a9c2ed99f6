"""The points of a scorecard, all together or in batches for the utility metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from metrics.forecast import Forecast
from metrics.registry import Metric


class Sample(NamedTuple):
    """Points, their numbers in the whole data set, and the metrics to compute on them.

    weights: weights of the points, [n], if they have any.
    families: families of the sampled users, "linear" and "rank", or none.
    """

    forecast: Forecast
    labels: Tensor
    points: Tensor
    weights: Tensor | None
    metrics: Sequence[Metric]
    families: Sequence[str]

    def at(self, rows: Tensor) -> Sample:
        """Return the sample of the points with the indices `rows` [k]."""
        return self._replace(
            forecast=Forecast(self.forecast.probabilities[rows]),
            labels=self.labels[rows],
            points=self.points[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


def in_batches(whole: Sample, utility_batch: int | None, seed: int) -> list[Sample]:
    """Return the whole sample, and the batches after it if utility metrics are means over them."""
    n = len(whole.labels)
    count = 1 if utility_batch is None else n // utility_batch
    if count <= 1:
        return [whole]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    batches = [rows.sort().values for rows in order.to(whole.labels.device).tensor_split(count)]
    of_utilities = whole._replace(metrics=[m for m in whole.metrics if m.of_utilities])
    others = [metric for metric in whole.metrics if not metric.of_utilities]
    return [whole._replace(metrics=others, families=()), *map(of_utilities.at, batches)]
