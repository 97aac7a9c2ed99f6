"""Every metric: its key, its heading and scale, its direction and unit, and how it is computed.

Tables, pages, configuration and command line read `METRICS`. To add a utility of your own, call
`register("u_mine", Mine())` before scoring. A metric that is no utility is a line in `METRICS`.
Headings and powers of ten are those of the paper's tables (section 4, appendix "Extended Results"),
so that a printed cell can be compared with the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .errors import InputError
from .option_checks import check_known

if TYPE_CHECKING:
    from .arrays import Array
    from .measurement import Measurement, Options
    from .utilities.base import UtilityClass
    from .utilities.function import Utility

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

UtilitiesOf: TypeAlias = "Callable[[Options], UtilityClass | None]"


@dataclass(frozen=True)
class Metric:
    """One metric and its column.

    Args:
        key, text: the key in tables and files, and the heading without the scale.
        power: the printed value is value x 10^power.
        meaning, unit: what is measured, for the legend, and the unit of the value.
        larger_is_better: its direction.
        has_floor: whether it is a calibration error, which is positive by chance alone.
        utilities: returns the class whose largest UC this is; None if options lack what it needs.
        compute: returns the values, one per outcome [R], if the metric is no UC of a class.
        sampled: whether it needs the users sampled for the eCDFs.
        resampled: whether it is measured under resampled points, too.
    """

    key: str
    text: str
    power: int
    meaning: str
    unit: str = "utility"
    larger_is_better: bool = False
    has_floor: bool = True
    utilities: UtilitiesOf = lambda options: None
    compute: Callable[[Measurement], Array] | None = None
    sampled: bool = False
    resampled: bool = True

    @property
    def scale(self) -> str:
        """The scale as plain text, such as `×10²`; "" for a power of 0."""
        return f"×10{str(self.power).translate(SUPERSCRIPTS)}" if self.power else ""

    def applies(self, options: Options) -> bool:
        """Whether the options contain what the metric needs, such as a similarity for `u_w2v`."""
        if self.compute is None:
            return self.utilities(options) is not None
        return options.utilities > 0 or not self.sampled

    @property
    def of_utilities(self) -> bool:
        """Whether this measures utilities, so that `utility_batch` applies."""
        return self.unit == "utility"

    def value(self, measurement: Measurement) -> Array:
        """Return the metric under each outcome: float64 [R]."""
        if self.compute is not None:
            return self.compute(measurement)
        utilities = self.utilities(measurement.options)
        if utilities is None:
            raise InputError("the options lack what this metric needs", field=self.key)
        return measurement.errors(utilities).max(axis=1)


def _late() -> Any:
    """The modules that compute. Imported when a metric is computed: a report needs no kernels."""

    from . import binned, scores, two_bin
    from .utilities import similarity, standard

    return SimpleNamespace(
        np=np,
        binned=binned,
        scores=scores,
        two_bin=two_bin,
        similarity=similarity,
        standard=standard,
    )


def utility_metric(
    key: str, name: str, utilities: UtilitiesOf, meaning: str = "", power: int = 3
) -> Metric:
    """Return the metric U_name: the largest UC over the utilities of a class."""
    return Metric(key, f"U_{name}", power, meaning, utilities=utilities)


def _quantile(key: str, text: str, family: str, level: float, meaning: str) -> Metric:
    return Metric(key, text, 3, meaning, compute=lambda m: m.quantile(family, level), sampled=True)


def _class_wise_binned(m: Measurement) -> Array:
    kind, classes = m.options.class_weights, m.forecast.classes
    weights = _late().binned.class_weights(kind, m.outcomes, classes)
    return (m.with_bins(_late().standard.ClassWise())[1] * weights).sum(axis=1)


METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric("accuracy", "Accuracy", 2, "how often the most probable class is right",
               "share", True, has_floor=False,
               compute=lambda m: _late().scores.accuracies(m.outcomes)),
        Metric("brier", "Brier", 2, "mean squared error of all probabilities of a point",
               "squared error", has_floor=False,
               compute=lambda m: _late().scores.brier_scores(m.forecast, m.outcomes)),
        Metric("nll", "NLL", 2, "log loss, the mean of -log(probability of the true class)",
               "nats", has_floor=False,
               compute=lambda m: _late().scores.log_losses(m.forecast, m.outcomes)),
        Metric("cwe_bin", "CWE_bin", 4,
               "error of the probabilities of single classes, in bins of equal weight", "share",
               compute=_class_wise_binned),
        Metric("tce_bin", "TCE_bin", 3,
               "error of the largest probability, in bins of equal weight", "share",
               compute=lambda m: m.with_bins(_late().standard.TopClass())[1][:, 0]),
        utility_metric("u_cwe", "CWE", lambda _: _late().standard.ClassWise(),
                       "error of the probability of one class, for the worst class", 4),
        utility_metric("u_topk", "topK", lambda _: _late().standard.TopK(),
                       "error of the probability that the true class is among the K most probable, "
                       "for the worst K"),
        utility_metric("u_tce", "TCE", lambda _: _late().standard.TopClass(),
                       "error of the probability that the most probable class is true"),
        Metric("u_comb", "U_comb", 3, "the larger of U_CWE and U_topK", compute=lambda m:
               _late().np.maximum(METRICS["u_cwe"].value(m), METRICS["u_topk"].value(m))),
        utility_metric("u_dcg", "dcg",
                       lambda options: _late().standard.DiscountedCumulativeGain(
                           tuple(options.exponents)),
                       "error of the expected gain: the lower the true class is ranked, the less "
                       "it is worth"),
        utility_metric("u_w2v", "w2v",
                       lambda options: None if options.similarity is None
                       else _late().similarity.Similarity(options.similarity),
                       "error of the expected gain: a class like the true one is partly right"),
        _quantile("u_lin_median", "U_lin median", "linear", 0.5,
                  "half of the random users whose payoff depends on the true class have a smaller "
                  "error"),
        _quantile("u_lin_q95", "U_lin 95 %", "linear", 0.95,
                  "95 % of the random users whose payoff depends on the true class have a smaller "
                  "error"),
        _quantile("u_rank_median", "U_rank median", "rank", 0.5,
                  "half of the random users whose payoff depends on the true class's rank have a "
                  "smaller error"),
        _quantile("u_rank_q95", "U_rank 95 %", "rank", 0.95,
                  "95 % of the random users whose payoff depends on the true class's rank have a "
                  "smaller error"),
        Metric("two_bin", "Two-bin", 4,
               "squared error in two bins, on average smallest for the true probabilities",
               "squared share", has_floor=False, resampled=False,
               compute=lambda m: _late().two_bin.two_bin_errors(m.forecast, m.outcomes)),
    )
}  # fmt: skip
"""All metrics by key, in the order of the tables."""
PURPOSES = {
    "u_cwe": "single decisions",
    "u_topk": "shortlists",
    "u_dcg": "rankings",
    "u_w2v": "similarity",
}
"""What people do with probabilities, by the metric that decides whether these are good for it."""


def register(
    key: str,
    utility: Utility,
    *,
    heading: str | None = None,
    meaning: str = "",
    power: int = 3,
) -> None:
    """Add a utility of your own to `METRICS`: it becomes the last column of every table.

    >>> register("u_first", lambda p: p * 0 + [1, 0], meaning="paid for class 0")
    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> card = scorecard(p, labels=[0, 1, 1, 0], utilities=0, floor_repetitions=0)
    >>> round(card["u_first"].value, 3)
    0.2
    >>> _ = METRICS.pop("u_first")

    Args:
        key: its key in tables and files, such as "u_mine".
        utility: a utility class, or a function p [n, C] -> u⃗ [n, C] on NumPy arrays, whose UC,
            the largest over its utilities (eq. 3.5), is the metric.
        heading: of its column; U_mine for the key "u_mine" if not given.
        meaning: what is measured, for the legend.
        power: the printed value is value x 10^power.

    Raises:
        InputError: another metric has this key, or what is given is no utility.
    """
    from .utilities.function import utility_of

    utilities = utility_of(utility)
    text = f"U_{key.removeprefix('u_')}" if heading is None else heading
    new = Metric(key, text, power, meaning, utilities=_Always(utilities))
    if METRICS.get(key, new) != new:
        raise InputError("there is a metric of this key", field=key, fixes="choose another")
    METRICS[key] = new


@dataclass(frozen=True)
class _Always:
    """The same utilities under all options; equal where these are."""

    utilities: UtilityClass

    def __call__(self, options: Options) -> UtilityClass:
        return self.utilities


def metric(key: str) -> Metric:
    """Return the metric of a key. The key of a user's own utility is also its heading."""
    return METRICS.get(key) or Metric(key, key, 3, "own")


def metrics_of(options: Options) -> list[Metric]:
    """Return the metrics that apply under `options`; those of `options.own` come last."""
    for key in options.own:
        if key in METRICS:
            fix = "name your utility otherwise"
            raise InputError("there is a metric of this key", field=key, fixes=fix)
    ours = [metric for metric in METRICS.values() if metric.applies(options)]

    def metric_of(key: str) -> Metric:
        return utility_metric(key, key, lambda options: options.own[key])

    return [*ours, *map(metric_of, options.own)]


def check_keys(keys: Iterable[str], own: Iterable[str] = (), where: str = "metrics") -> None:
    """Raise `InputError`, with a suggestion, for the first key that is no metric."""
    check_known(keys, [*METRICS, *own], where, "metric")
