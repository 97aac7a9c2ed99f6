"""Every number that the paper reports about one forecast, and how much of it is noise.

Even a perfectly calibrated classifier has positive errors on a finite sample: the noise floor, the
metric under labels drawn from the forecast itself. An observed error within that range does not
speak against calibration. The scorecard also says what the points imply for other points: a
certificate for the true UC (`metrics/certificate.py`), and the metric under resampled points.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .acting import ActingGain, largest_gain
from .arrays import Array
from .certificate import CalibrationInterval, Evidence, evidence_of, joined
from .forecast import Forecast, Outcomes
from .keywords import SampleOptions
from .measurement import Measurement, Options, sampled_users
from .option_checks import check_known
from .registry import METRICS, PURPOSES, metrics_of
from .resampling import Floats, NoiseFloor, bootstrap_draws, floor_draws, means
from .result import CalibrationResult
from .samples import Sample, in_batches, sample_of
from .scores import zero_likelihoods
from .shown import WorstUtility
from .utilities.base import UtilityClass

if TYPE_CHECKING:
    import pandas as pd

Result: TypeAlias = CalibrationResult[NDArray[np.float64]]


class ErrorCurve(NamedTuple):
    """UC of the sampled users of a family, whose eCDF section 4 shows: [M] each.

    Attributes:
        errors: of each user, in the order of the sample.
        floor_mean, floor_q05, floor_q95: mean and quantiles of the sorted errors under drawn
            labels, interpolated from those of `floor_utilities` users; empty without draws.
    """

    errors: Floats
    floor_mean: Floats
    floor_q05: Floats
    floor_q95: Floats


class Row(NamedTuple):
    """One line of a report: what people do, the error, that by chance alone, and its bound."""

    use: str
    error: float
    by_chance: float | None
    at_most: float | None

    def cells(self) -> list[str]:
        """Return the line's texts."""
        numbers = (self.error, self.by_chance, self.at_most)
        return [self.use, *("–" if x is None else f"{x:.4f}" for x in numbers)]


SCORES = ("accuracy", "brier", "nll")
HEADINGS = ("use", "error", "by chance", "at most")
NOTE = 'Observed errors up to the column "by chance" cannot be told from chance.'


@dataclass(frozen=True, repr=False)
class Scorecard:
    """The metrics of one forecast, each with what chance has to do with it.

    `card["u_topk"]` is the record of a metric by its key in `METRICS`, such as that of
    `TopK().evaluate(…)` (metrics/result.py): `.value`, `.floor`, `.interval`, `.worst`, `.gain`,
    `.floor_draws` and `.bootstrap_draws`. Parts that do not apply to a metric, or were not asked
    for, are no attributes of it. `.worst` and `.gain` are of the batch with the largest error, and
    `.gain` is that of the worst utility, without a floor.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> card = scorecard(p, labels=[0, 1, 2, 1], utilities=0, floor_repetitions=50)
    >>> round(card["u_topk"].value, 3), card["u_topk"].worst.utility, "u_cwe" in card
    (0.15, 1, True)
    >>> len(card), card.metrics["accuracy"]
    (11, 0.5)

    Attributes:
        results: the record of each metric by key.
        curves: UC of the sampled users, "linear" and "rank"; empty if none are sampled.
        interval: bounds on the true error of all utility classes together except the user's own,
            whose unit may differ; None without redrawn labels, and if utility metrics are means
            over batches.
        zero_likelihood: number of points whose label had probability 0; the NLL has a floor for
            them.
    """

    results: Mapping[str, Result]
    curves: Mapping[str, ErrorCurve] = field(default_factory=dict)
    interval: CalibrationInterval | None = None
    zero_likelihood: int = 0

    def __getitem__(self, key: str) -> Result:
        check_known([key], list(self.results), "scorecard", "metric of it")
        return self.results[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __contains__(self, key: object) -> bool:
        return key in self.results

    @property
    def metrics(self) -> dict[str, float]:
        """The value of each metric by its key, in the order of the tables."""
        return {key: result.value for key, result in self.results.items()}

    def report(self) -> None:
        """Print the verdict: for each purpose the error, the error by chance alone, and a bound.

        A purpose is within noise if its error is at most the 95 % quantile of the errors that a
        perfectly calibrated forecast with these probabilities has. The bound holds for fresh points
        of the same kind with the confidence of the certificates, 95 % by default.
        """
        print(self)

    def _rows(self) -> list[Row]:
        uses = {key: use for key, use in PURPOSES.items() if key in self}
        uses |= {key: key for key in self if key not in METRICS}  # your own utilities
        rows = []
        for key, use in uses.items():
            result = self[key]
            by_chance = result.floor.q95 if hasattr(result, "floor") else None
            at_most = result.interval.upper if hasattr(result, "interval") else None
            rows.append(Row(use, result.value, by_chance, at_most))
        return rows

    def _verdict(self, rows: Sequence[Row]) -> str:
        drawn = [row for row in rows if row.by_chance is not None]
        within = [row.use for row in drawn if row.error <= (row.by_chance or 0.0)]
        beyond = [row.use for row in drawn if row.use not in within]
        verdicts = {"within noise of perfectly calibrated": within, "beyond noise": beyond}
        parts = [f"{verdict} for {', '.join(uses)}" for verdict, uses in verdicts.items() if uses]
        unknown = "not compared with chance: no labels were redrawn"
        return f"{('; '.join(parts) or unknown).capitalize()}."

    def _notes(self, rows: Sequence[Row]) -> list[str]:
        is_compared = any(row.by_chance is not None for row in rows)
        scores = [f"{METRICS[key].text} {self[key].value:.4f}" for key in SCORES if key in self]
        return [*([NOTE] if is_compared else []), ", ".join(scores)]

    def __repr__(self) -> str:
        rows = self._rows()
        wide = max(18, *(len(row.use) + 2 for row in rows))
        lines = [HEADINGS, *(row.cells() for row in rows)]
        table = [f"{a:<{wide}}{b:>9}{c:>12}{d:>10}" for a, b, c, d in lines]
        return "\n\n".join([self._verdict(rows), "\n".join(table), *self._notes(rows)])

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it, with a table."""
        rows = self._rows()
        lines = ["".join(f"<th>{heading}</th>" for heading in HEADINGS)]
        lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row.cells()) for row in rows]
        table = "".join(f"<tr>{line}</tr>" for line in lines)
        notes = [f"<p>{html.escape(note)}</p>" for note in self._notes(rows)]
        verdict = f"<p>{html.escape(self._verdict(rows))}</p>"
        return "\n".join([verdict, f"<table>{table}</table>", *notes])

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers by name, as MLflow, Weights & Biases and a Trainer take them.

        Beside each metric `<key>` are, where they were computed, `<key>_by_chance` (the 95 %
        quantile of its noise floor), `<key>_p_value` and `<key>_upper`, the bound on fresh points.
        """
        ends = {"value": "", "q95": "_by_chance", "p_value": "_p_value", "upper": "_upper"}
        numbers: dict[str, float] = {}
        for key, result in self.results.items():
            row = result.numbers()
            numbers |= {f"{key}{end}": float(row[of]) for of, end in ends.items() if of in row}
        return numbers

    def frame(self) -> pd.DataFrame:
        """Return a data frame with a row per metric; what does not apply to a metric is NaN.

        Columns: value; mean, q95 and p_value of the noise floor; lower and upper bound on the true
        value; the number of the worst utility, and low, high, sign and error of its interval; gain,
        threshold and act_from of acting otherwise.
        """
        import pandas as pd  # it takes half a second

        rows = {key: result.numbers() for key, result in self.results.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")


def scorecard(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    options: Options | None = None,
    rows_sum_to_one: bool = True,
    population: int | None = None,
    **keywords: Any,
) -> Scorecard:
    """Compute all metrics, their noise floor and the eCDFs of U_lin and U_rank.

    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> card = scorecard(p, labels=[0, 1, 1, 0], utilities=0, floor_repetitions=50)
    >>> card["accuracy"].value, round(card["u_topk"].value, 3), card["u_topk"].worst.utility
    (0.75, 0.2, 0)

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`.
        options: what is measured and how (metrics/measurement.py).
        rows_sum_to_one: False admits rows with other sums, as isotonic regression may give them.
            Labels cannot be drawn from such rows, so there are no noise floor and no interval.
        population: the number of points in the whole data set, or of clusters if there are any,
            which the bootstrap resamples; those given here, if it is None. With it, `clusters` are
            their numbers in the whole data set, from 0.
        **keywords: those of `UtilityClass.evaluate` for the points (`sample_weight`, `classes`,
            `ignore_index`, `clusters`, `points`), and fields of `options` by name:
            `scorecard(p, y, utilities=0, bootstrap_repetitions=200)`. A weight of 3 counts as the
            point three times, but not as more evidence: intervals are as wide as for n points.

    Raises:
        InputError: as `accuracy`, and for an option that is unknown or out of its range.
    """
    names = [entry.name for entry in fields(Options)]
    of_points = list(SampleOptions.__annotations__)
    check_known(keywords, [*names, *of_points], "scorecard", "option")
    changes = {name: value for name, value in keywords.items() if name in names}
    options = replace(options or Options(), **changes)
    of_sample: dict[str, Any] = {n: value for n, value in keywords.items() if n in of_points}
    of_sample |= {"population": population, "rows_sum_to_one": rows_sum_to_one}
    whole = sample_of(probabilities, labels, **of_sample)
    users = sampled_users(whole.forecast.classes, options, options.utilities)
    few = sampled_users(whole.forecast.classes, options, options.floor_utilities)
    whole = replace(whole, metrics=metrics_of(options), families=tuple(users))
    samples = in_batches(whole, options.utility_batch, options.noise_seed)
    observed = [Measurement(s.forecast, s.outcomes, options, users) for s in samples]

    def measure(sample: Sample, forecast: Forecast, outcomes: Outcomes) -> dict[str, Array]:
        return _measured(sample, Measurement(forecast, outcomes, options, few))

    of_errors = [replace(s, metrics=[m for m in s.metrics if m.has_floor]) for s in samples]
    repetitions, seed = options.floor_repetitions * rows_sum_to_one, options.noise_seed
    drawn = floor_draws(of_errors, measure, repetitions, seed)
    resampled = bootstrap_draws(samples, measure, options.bootstrap_repetitions, seed, population)
    return _card(whole, samples, observed, drawn, resampled)


def _measured(sample: Sample, measurement: Measurement) -> dict[str, Array]:
    """Return the metrics under each outcome, [R] each, and the users' sorted errors, [R, M]."""
    curves = {f"{family} curve": measurement.sorted_errors(family) for family in sample.families}
    return {metric.key: metric.value(measurement) for metric in sample.metrics} | curves


def _card(
    whole: Sample,
    samples: Sequence[Sample],
    observed: Sequence[Measurement],
    drawn: Mapping[str, Floats],
    resampled: Mapping[str, Floats],
) -> Scorecard:
    """Return the scorecard of what was measured under observed, drawn and resampled outcomes."""
    measured = means(map(_measured, samples, observed))
    keys = [metric.key for metric in whole.metrics]
    floors = {key: drawn[key] for key in keys if key in drawn}
    intervals: dict[str, CalibrationInterval] = {}
    of_all = None
    if len(samples) == 1:
        intervals, of_all = _intervals(whole, observed[0], floors)
    results = {}
    for metric in whole.metrics:
        key = metric.key
        value = float(measured[key][0])
        parts: dict[str, Any] = {"value": value}
        if metric.has_floor:
            parts["error"] = value
        if key in floors:
            parts["floor"] = NoiseFloor.of(floors[key], value)
            parts["floor_draws"] = floors[key]
        if key in resampled:
            parts["bootstrap_draws"] = resampled[key]
        if key in intervals:
            parts["interval"] = intervals[key]
        utilities = metric.utilities(observed[0].options)
        if utilities is not None:
            batches = [m for s, m in zip(samples, observed, strict=True) if metric in s.metrics]
            if len(batches) == 1:
                parts["errors"] = batches[0].errors(utilities)[0]
            parts["worst"], parts["gain"] = _worst(utilities, batches)
        results[key] = CalibrationResult.of_parts(key, parts)
    return Scorecard(
        results,
        {family: _curve(family, samples, observed, drawn) for family in whole.families},
        of_all,
        int(zero_likelihoods(whole.forecast, whole.outcomes)[0]),
    )


def _worst(
    utilities: UtilityClass, batches: Sequence[Measurement]
) -> tuple[WorstUtility, ActingGain]:
    """Return the worst utility in the batch of the largest error, and the gain of its user."""
    batch = max(batches, key=lambda m: float(m.errors(utilities).max()))
    forecast, outcomes = batch.forecast, batch.outcomes
    worst = utilities.worst_of(forecast, outcomes, batch.errors(utilities)[0])
    v, u = utilities.predicted_and_realized(forecast, outcomes, worst.utility)
    gain = largest_gain(v, u, None if outcomes.weights is None else outcomes.weights[0])
    return worst, ActingGain(**gain, utility=worst.utility, floor=float("nan"))


def _curve(
    family: str,
    samples: Sequence[Sample],
    observed: Sequence[Measurement],
    drawn: Mapping[str, Floats],
) -> ErrorCurve:
    """Return the errors of the sampled users of a family: means over the batches."""
    batches = [m for s, m in zip(samples, observed, strict=True) if s.families]
    errors = np.stack([m.errors(m.users[family])[0] for m in batches]).mean(axis=0)
    by_chance = drawn.get(f"{family} curve")
    if by_chance is None:
        none = np.empty(0)
        return ErrorCurve(errors, none, none, none)
    q05, q95 = np.quantile(by_chance, (0.05, 0.95), axis=0)
    places, known = np.linspace(0, 1, len(errors)), np.linspace(0, 1, by_chance.shape[1])
    lines = [np.interp(places, known, line) for line in (by_chance.mean(axis=0), q05, q95)]
    return ErrorCurve(errors, *lines)


def _intervals(
    sample: Sample, observed: Measurement, floors: Mapping[str, Floats]
) -> tuple[dict[str, CalibrationInterval], CalibrationInterval | None]:
    """Return bounds on the true UC of each class, and of all except the user's together."""
    if not floors:
        return {}, None
    evidence: dict[str, Evidence] = {}
    options = observed.options
    multipliers = sample.multipliers(options.noise_seed, options.confidence)
    for metric in sample.metrics:
        utilities = metric.utilities(options)
        if utilities is not None:
            evidence[metric.key] = evidence_of(
                utilities,
                sample,
                floors[metric.key],
                options.confidence,
                multipliers,
            )
    of_all = joined([part for key, part in evidence.items() if key not in options.own])
    intervals = {key: part.interval(options.confidence) for key, part in evidence.items()}
    return intervals, of_all.interval(options.confidence)
