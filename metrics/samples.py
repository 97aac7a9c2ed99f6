"""The checked points of an evaluation, in clusters, and as independent observations."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array, plain
from .errors import InputError
from .forecast import Forecast, Outcomes
from .kernels.draws import SIXTEEN, Draws
from .keywords import SampleOptions, check_keywords
from .layout import entries_at, points_of
from .option_checks import USUAL_CONFIDENCE, draws_for
from .scores import checked_points
from .validation import check_labels, check_nothing_is_masked
from .weights import are_equal, counted

LARGEST_POINT = 1 << 62
NORMALS_TOGETHER = 1 << 20
"""Number of normal numbers drawn at a time; these are the same for any number of sets of them that
is a multiple of sixteen."""
ABSENT = ("", "nan", "None", "<NA>", "NaT")
"""How the missing name of a cluster reads."""
DRAWN_TOGETHER = 1 << 23
"""Number of labels drawn at a time: 64 MB for each of labels, ranks and uniforms."""
MOST_MULTIPLIERS = 1 << 29  # numbers of 4 bytes that a higher confidence may take
MOST_STEPS = 10  # towards the weights of classes without a point
DEPENDENT = 1e-3
"""The p-value from which on weights are taken to depend on the label."""


@dataclass(frozen=True)
class Sample:
    """Points with what is known of them.

    The independent observations behind a certificate, its units, are clusters, or else points.

    Attributes:
        forecast, outcomes: the probabilities, and the observed labels with their weights.
        points: [n], the number of each point in the whole data set.
        by_label: [C], the weight of each class, if the weights are a function of the label.
        clusters: [n], the number of each point's cluster, if points come in clusters.
        weights_go_with_labels: whether weights depend on the label but are no function of it.
    """

    forecast: Forecast
    outcomes: Outcomes
    points: Array
    by_label: Array | None
    clusters: Array | None
    weights_go_with_labels: bool = False

    @property
    def labels(self) -> Array:
        """The observed labels: [n]."""
        return self.outcomes.labels[0]

    @property
    def weights(self) -> Array | None:
        """The weights of the points, [n], if they have any."""
        return None if self.outcomes.weights is None else self.outcomes.weights[0]

    def at(self, rows: Array) -> Self:
        """Return the sample of the points with the indices `rows` [k]."""
        forecast = Forecast(self.forecast.probabilities[rows])
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self,
            forecast=forecast,
            outcomes=forecast.outcomes(self.labels[rows], weights),
            points=self.points[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
        )

    @cached_property
    def of_units(self) -> Array | None:
        """The number of each point's cluster among those of the sample: [n]; None without any."""
        return None if self.clusters is None else np.unique(self.clusters, return_inverse=True)[1]

    @cached_property
    def count(self) -> int:
        """The number of units."""
        return self.forecast.n if self.of_units is None else int(self.of_units.max()) + 1

    @cached_property
    def largest(self) -> float:
        """The largest total weight of a unit; their mean is one."""
        n, weights = self.forecast.n, self.weights
        shares = np.ones(n) if weights is None else weights / weights.mean()
        if self.of_units is not None:
            shares = np.bincount(self.of_units, shares, minlength=self.count)
            shares = shares * (self.count / n)
        return float(shares.max())

    @property
    def has_equal_weights(self) -> bool:
        """Whether all points weigh the same, so that no unseen point can weigh more."""
        if self.weights is None:
            return True
        return are_equal(float(self.weights.min()), float(self.weights.max()))

    def second_moments(self, residuals: Array) -> Array:
        """Return the mean over the units of the square of the sum of |residuals| [b, n]: [b]."""
        if self.of_units is None:
            return np.square(residuals).mean(axis=1)
        sums = [np.bincount(self.of_units, row, self.count) for row in np.abs(residuals)]
        return np.square(np.stack(sums)).mean(axis=1) * (self.count / residuals.shape[1]) ** 2

    def multipliers(self, seed: int, confidence: float) -> Array:
        """Return sets of a normal number per unit for a quantile at `confidence`, float32 [R, n].

        The seven digits of float32 are enough, and reading the numbers takes most of the time. A
        point's numbers lie side by side in memory, as the sums over points read them.
        `InputError` if a high confidence needs more sets than fit into `MOST_MULTIPLIERS`.
        """
        count = draws_for(confidence)
        if confidence > USUAL_CONFIDENCE and count * self.forecast.n > MOST_MULTIPLIERS:
            message = f"{confidence:g} needs {count:,} draws of {self.forecast.n:,} numbers"
            fixes = ["give a smaller one", "give fewer points"]
            raise InputError(message, field="confidence", fixes=fixes)
        draws, by_unit = Draws(seed), np.empty((self.count, count), np.float32)
        step = SIXTEEN * max(1, NORMALS_TOGETHER // (SIXTEEN * self.count))
        for start in range(0, count, step):
            block = by_unit[:, start : start + step].T
            block[:] = draws.normals(block.size).reshape(block.shape)
        return by_unit.T if self.of_units is None else by_unit[self.of_units].T


def sample_of(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    population: int | None = None,
    rows_sum_to_one: bool = True,
    **options: Unpack[SampleOptions],
) -> Sample:
    """Return the checked points of the arguments of `UtilityClass.evaluate` and `scorecard`.

    Points of weight 0 are left out, and equal weights are none (metrics/weights.py). With
    `population`, `clusters` are numbers below it, from 0; else they are names. A warning says of
    which weights the floors are approximate.
    """
    check_keywords(options, SampleOptions)
    probabilities, labels, sample_weight, clusters, points = points_of(
        probabilities,
        labels,
        options.get("ignore_index"),
        sample_weight=options.get("sample_weight"),
        clusters=options.get("clusters"),
        points=options.get("points"),
    )
    forecast, labels, sample_weight = checked_points(
        probabilities,
        labels,
        sample_weight,
        classes=options.get("classes"),
        rows_sum_to_one=rows_sum_to_one,
    )
    # Before points of weight 0 leave, so that a message counts the rows of the caller.
    for name, values in (("clusters", clusters), ("points", points)):
        if values is not None:
            check_one_each(values, forecast.n, name)
    if sample_weight is not None:
        rows, sample_weight = counted(sample_weight)
        if rows is not None:
            forecast = Forecast(forecast.probabilities[rows])
            labels = labels[rows]
            clusters = entries_at(clusters, rows)
            points = entries_at(points, rows)
    n_points = forecast.n
    if points is None:
        points = np.arange(n_points)
    points = check_labels(points, n_points, LARGEST_POINT, "points")
    if clusters is not None:
        if population is None:
            clusters = cluster_numbers(clusters, n_points)
        else:
            clusters = check_labels(clusters, n_points, population, "clusters")
    outcomes = forecast.outcomes(labels, sample_weight)
    by_label = weights_by_label(forecast, outcomes)
    # A drawn label has its weight if weights are a function of labels; else it is approximate.
    are_dependent = by_label is None and weights_go_with_labels(forecast, outcomes)
    _warn_of_weights(forecast, outcomes, by_label, are_dependent)
    return Sample(forecast, outcomes, points, by_label, clusters, are_dependent)


def _warn_of_weights(
    forecast: Forecast, outcomes: Outcomes, by_label: Array | None, are_dependent: bool
) -> None:
    """Warn where drawn labels have no sure weights: how weights depend on labels is a guess."""
    message = ""
    if are_dependent:
        message = (
            "weights differ by label more than the forecast explains, and are no function of the "
            "label; noise floors and p-values are approximate (alarms of 5 % may be 8 %)"
        )
    elif by_label is not None:
        n_absent = forecast.classes - len(np.unique(outcomes.labels[0]))
        if n_absent:
            message = (
                f"{n_absent} classes have no point here, so their weights are not known; noise "
                "floors take weights with which one point of each is expected"
            )
    if message:
        warnings.warn(f"sample_weight: {message}", stacklevel=4)  # the caller of `evaluate`


def weights_by_label(forecast: Forecast, outcomes: Outcomes) -> Array | None:
    """Return the weight of each class [C], or None if weights are no function of the label.

    A class without points gets the mean weight, or one so large that the forecast expects a single
    point of it: the sample does not say that it is not heavy. Equal weights, or one point per
    class, tell nothing. A point of weight 0 is no point.
    """
    if outcomes.weights is None:
        return None
    counted, classes = outcomes.weights[0] > 0, forecast.classes
    labels, weights = outcomes.labels[0][counted], outcomes.weights[0][counted]
    low, high = np.full(classes, np.inf), np.full(classes, -np.inf)
    np.minimum.at(low, labels, weights)
    np.maximum.at(high, labels, weights)
    known = low <= high
    lowest, highest = low[known], high[known]
    equal = 1 + 1e-6  # a larger ratio of two weights is more than rounding
    varies = highest.max() > equal * lowest.min() > 0
    differs_in_a_class = bool((highest > equal * lowest).any())
    if not varies or differs_in_a_class or len(lowest) == len(labels):
        return None
    by_label = np.where(known, low, weights.mean())
    if bool(known.all()):
        return by_label
    for _ in range(MOST_STEPS):
        shares = forecast.probabilities[counted] / by_label
        expected = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
        by_label = np.where(known, low, by_label * expected.clip(min=1))
    return by_label


def weights_go_with_labels(forecast: Forecast, outcomes: Outcomes) -> bool:
    """Return whether weights and residuals 1{y = c} - p_c are correlated for some class c.

    That is Bonferroni's test over the classes at one per mille. Weights that are given by the
    forecast, and forecasts that are wrong by the same everywhere, have no such correlation.
    """
    if outcomes.weights is None:
        return False
    excess = outcomes.weights[0] - outcomes.weights[0].mean()
    residuals = -forecast.probabilities
    residuals[np.arange(forecast.n), outcomes.labels[0]] += 1
    products = (residuals - residuals.mean(axis=0)) * excess[:, None]
    limit = NormalDist().inv_cdf(1 - DEPENDENT / (2 * forecast.classes))
    return bool(
        (np.abs(products.sum(axis=0)) > limit * np.sqrt(np.square(products).sum(axis=0))).any()
    )


def check_one_each(values: Any, n: int, name: str) -> None:
    """Raise `InputError` unless there is one value for each of n points."""
    shape = np.shape(plain(values, name))
    if shape != (n,):
        message = f"shape {list(shape)} for {n} rows"
        raise InputError(message, field=name, fixes="give one per row")


def cluster_numbers(clusters: ArrayLike | None, n: int) -> Array:
    """Return the number of each point's cluster, int64 [n] from 0, for the clusters' names [n]."""
    check_nothing_is_masked(clusters, "clusters")
    check_one_each(clusters, n, "clusters")
    names = np.asarray(plain(clusters, "clusters"))
    absent = [str(name).strip() in ABSENT for name in names.tolist()]
    if any(absent):
        row = absent.index(True)
        raise InputError(
            "none", field="clusters", row=row, fixes="give each row the name of its cluster"
        )
    texts = names.astype(str) if names.dtype == object else names
    distinct, first, numbers = np.unique(texts, return_index=True, return_inverse=True)
    if len(distinct) < 2:
        fix = "give what tells the independent units apart, such as patients"
        raise InputError(f"all rows are of cluster {distinct[0]}", field="clusters", fixes=fix)
    # In the order of their first points: other names of the same clusters draw the same numbers.
    return np.argsort(np.argsort(first))[numbers].astype(np.int64)
