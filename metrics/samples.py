"""The points of a scorecard, and the batches of points over which utility metrics may be means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.names import class_numbers, cluster_numbers
from metrics.registry import Metric
from metrics.resampling import point_numbers, weights_by_label
from metrics.validation import check_labels, check_probabilities, check_weights


class Sample(NamedTuple):
    """Points, their numbers in the whole data set, and the metrics to compute on them.

    weights: weights of the points, [n], if they have any. by_label: the weight of each class, [C],
    if the weights are a function of the label. clusters: the number of each point's cluster, [n],
    if points come in clusters.
    families: families of the sampled users, "linear" and "rank", or none.
    """

    forecast: Forecast
    labels: Tensor
    points: Tensor
    weights: Tensor | None
    by_label: Tensor | None
    clusters: Tensor | None
    metrics: Sequence[Metric] = ()
    families: Sequence[str] = ()

    @property
    def outcomes(self) -> Outcomes:
        """The outcomes that were observed."""
        return self.forecast.outcomes(self.labels, self.weights)

    def at(self, rows: Tensor) -> Sample:
        """Return the sample of the points with the indices `rows` [k]."""
        return self._replace(
            forecast=Forecast(self.forecast.probabilities[rows]),
            labels=self.labels[rows],
            points=self.points[rows],
            weights=None if self.weights is None else self.weights[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
        )


def sample_of(
    probabilities: Any,
    labels: Any,
    rows_sum_to_one: bool,
    sample_weight: Any,
    clusters: Any,
    points: Any,
    population: int | None,
    names: Any = None,
) -> Sample:
    """Return the checked sample of the arguments of `scorecard`, without metrics to compute."""
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    forecast, (n, classes) = Forecast(p), p.shape
    columns = getattr(probabilities, "columns", None)
    y = check_labels(class_numbers(labels, names, classes, columns=columns), n, classes)
    y = y.to(p.device)
    weights = None if sample_weight is None else check_weights(sample_weight, n).to(p.device)
    if clusters is None or population is None:
        of_points = cluster_numbers(clusters, forecast)
    else:
        of_points = check_labels(clusters, n, population, "clusters").to(p.device)
    numbers = point_numbers(points, n).to(p.device)
    by_label = weights_by_label(y, weights, classes)
    return Sample(forecast, y, numbers, weights, by_label, of_points)


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
