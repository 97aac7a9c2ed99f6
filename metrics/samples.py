"""The checked points of a scorecard, and the batches over which utility metrics may be means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.names import cluster_numbers
from metrics.registry import Metric
from metrics.scores import checked
from metrics.validation import check_labels

LARGEST_POINT = 1 << 62


class Sample(NamedTuple):
    """Points, and the metrics to compute on them.

    Attributes:
        forecast, outcomes: the probabilities, and the observed labels with their weights.
        points: [n], the number of each point in the whole data set.
        by_label: [C], the weight of each class, if the weights are a function of the label.
        clusters: [n], the number of each point's cluster, if points come in clusters.
        metrics: the metrics to compute.
        families: families of the sampled users, "linear" and "rank", or none.
    """

    forecast: Forecast
    outcomes: Outcomes
    points: Tensor
    by_label: Tensor | None
    clusters: Tensor | None
    metrics: Sequence[Metric] = ()
    families: Sequence[str] = ()

    @property
    def labels(self) -> Tensor:
        """The observed labels: [n]."""
        return self.outcomes.labels[0]

    @property
    def weights(self) -> Tensor | None:
        """The weights of the points, [n], if they have any."""
        return None if self.outcomes.weights is None else self.outcomes.weights[0]

    def at(self, rows: Tensor) -> Sample:
        """Return the sample of the points with the indices `rows` [k]."""
        forecast = Forecast(self.forecast.probabilities[rows])
        weights = None if self.weights is None else self.weights[rows]
        return self._replace(
            forecast=forecast,
            outcomes=forecast.outcomes(self.labels[rows], weights),
            points=self.points[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
        )


def sample_of(
    probabilities: Any,
    labels: Any,
    sample_weight: Any,
    classes: Any,
    clusters: Any,
    points: Any = None,
    population: int | None = None,
    rows_sum_to_one: bool = True,
) -> Sample:
    """Return the checked sample of the arguments of `scorecard`, without metrics to compute."""
    forecast, outcomes = checked(probabilities, labels, sample_weight, classes, rows_sum_to_one)
    n, device = forecast.n, forecast.probabilities.device
    numbers = (
        torch.arange(n) if points is None else check_labels(points, n, LARGEST_POINT, "points")
    )
    if clusters is None or population is None:
        of_points = cluster_numbers(clusters, forecast)
    else:
        of_points = check_labels(clusters, n, population, "clusters").to(device)
    by_label = weights_by_label(outcomes, forecast.classes)
    return Sample(forecast, outcomes, numbers.to(device), by_label, of_points)


def weights_by_label(outcomes: Outcomes, classes: int) -> Tensor | None:
    """Return the weight of each class [C], or None if weights are no function of the label.

    Classes without points get the mean weight. Equal weights, or one point per class, tell nothing.
    """
    if outcomes.weights is None:
        return None
    labels, weights = outcomes.labels[0], outcomes.weights[0]
    low = weights.new_full((classes,), torch.inf).scatter_reduce_(0, labels, weights, "amin")
    high = weights.new_full((classes,), -torch.inf).scatter_reduce_(0, labels, weights, "amax")
    known, equal = low <= high, 1 + 1e-6
    low_, high_ = low[known], high[known]
    varies = high_.max() > equal * low_.min() > 0
    if not varies or bool((high_ > equal * low_).any()) or len(low_) == len(labels):
        return None
    return torch.where(known, low, weights.mean())


def in_batches(whole: Sample, utility_batch: int | None, seed: int) -> list[Sample]:
    """Return the whole sample, and the batches after it if utility metrics are means over them."""
    n = whole.forecast.n
    count = 1 if utility_batch is None else n // utility_batch
    if count <= 1:
        return [whole]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    batches = [rows.sort().values for rows in order.to(whole.labels.device).tensor_split(count)]
    of_utilities = whole._replace(metrics=[m for m in whole.metrics if m.of_utilities])
    others = [metric for metric in whole.metrics if not metric.of_utilities]
    return [whole._replace(metrics=others, families=()), *map(of_utilities.at, batches)]
