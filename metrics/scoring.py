"""Compute a scorecard: the metrics under the observed labels, drawn labels and resampled points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .acting import ActingGain, largest_gain
from .arrays import Array
from .batches import Batch, in_batches
from .card import ErrorCurve, Scorecard
from .certificate import CalibrationInterval, Evidence, evidence_of, joined
from .forecast import Forecast, Outcomes
from .keywords import SampleOptions
from .measurement import Measurement, Options
from .option_checks import check_known
from .registry import metrics_of
from .resampling import Floats, NoiseFloor, bootstrap_draws, floor_draws, means
from .result import CalibrationResult
from .samples import Sample, sample_of
from .scores import tied_points, zero_likelihoods
from .shown import WorstUtility
from .users import sampled_users
from .utilities.base import UtilityClass


def scorecard(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    options: Options | None = None,
    rows_sum_to_one: bool = True,
    population: int | None = None,
    **keywords: Any,
) -> Scorecard:
    """Return all metrics (section 4), their noise floors, and the eCDFs of U_lin and U_rank.

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

    Returns:
        The `Scorecard`: `card["u_topk"]` is the record of a metric, in its own unit (`METRICS`).

    Raises:
        InputError: as `accuracy`, and for an option that is unknown or out of its range.
    """
    options, about_points = _sorted_out(options or Options(), keywords)
    sample = sample_of(
        probabilities,
        labels,
        population=population,
        rows_sum_to_one=rows_sum_to_one,
        **about_points,
    )
    # Labels cannot be drawn from rows that do not sum to one.
    n_floor = options.floor_repetitions if rows_sum_to_one else 0
    return _scored(sample, options, n_floor, population)


def _scored(sample: Sample, options: Options, n_floor: int, population: int | None) -> Scorecard:
    """Return the scorecard of a sample, measured under observed, drawn and resampled outcomes.

    n_floor: number of draws of the labels.
    """
    users = sampled_users(sample.forecast.classes, options)
    whole = Batch.of(sample, metrics_of(options), users)
    batches = in_batches(whole, options.utility_batch, options.noise_seed)
    observed = [Measurement(b.forecast, b.outcomes, options, b.users) for b in batches]

    def measure(batch: Batch, forecast: Forecast, outcomes: Outcomes) -> dict[str, Array]:
        return _measured(batch, Measurement(forecast, outcomes, options, batch.users))

    seed = options.noise_seed
    drawn = floor_draws([b.to_redraw(options) for b in batches], measure, n_floor, seed)
    n_points = max(population or 0, sample.forecast.n)
    resampled = bootstrap_draws(
        [b.to_resample(n_points, options) for b in batches],
        measure,
        options.bootstrap_repetitions,
        seed,
        population,
    )
    return _card(whole, batches, observed, drawn, resampled)


def _sorted_out(options: Options, keywords: dict[str, Any]) -> tuple[Options, Any]:
    """The options with those that stand among the keywords, and the keywords about the points."""
    names = [entry.name for entry in fields(Options)]
    names_of_points = list(SampleOptions.__annotations__)
    check_known(keywords, [*names, *names_of_points], "scorecard", "option")
    changes = {name: value for name, value in keywords.items() if name in names}
    about_points = {name: value for name, value in keywords.items() if name in names_of_points}
    return replace(options, **changes), about_points


def _measured(batch: Batch, measurement: Measurement) -> dict[str, Array]:
    """Return the metrics under each outcome, [R] each, and the users' sorted errors, [R, M]."""
    curves = {f"{family} curve": measurement.sorted_errors(family) for family in batch.families}
    return {metric.key: metric.value(measurement) for metric in batch.metrics} | curves


def _card(
    whole: Batch,
    batches: Sequence[Batch],
    observed: Sequence[Measurement],
    drawn: Mapping[str, Floats],
    resampled: Mapping[str, Floats],
) -> Scorecard:
    """Return the scorecard of what was measured under observed, drawn and resampled outcomes."""
    measured = means(map(_measured, batches, observed))
    keys = [metric.key for metric in whole.metrics]
    floors = {key: drawn[key] for key in keys if key in drawn}
    intervals: dict[str, CalibrationInterval] = {}
    of_all = None
    # The bounds are derived for one sample. A mean over batches has none.
    if len(batches) == 1:
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
            of_metric = [
                measurement
                for batch, measurement in zip(batches, observed, strict=True)
                if metric in batch.metrics
            ]
            if len(of_metric) == 1:
                parts["errors"] = of_metric[0].errors(utilities)[0]
            parts["worst"], parts["gain"] = _worst(utilities, of_metric)
        results[key] = CalibrationResult.of_parts(key, parts)
    return Scorecard(
        results,
        {family: _curve(family, batches, observed, drawn) for family in whole.families},
        of_all,
        int(zero_likelihoods(whole.forecast, whole.outcomes)[0]),
        tied_points(whole.forecast) / whole.forecast.n,
    )


def _worst(
    utilities: UtilityClass, observed: Sequence[Measurement]
) -> tuple[WorstUtility, ActingGain]:
    """Return the worst utility in the batch of the largest error, and the gain of its user."""
    measurement = max(observed, key=lambda m: float(m.errors(utilities).max()))
    forecast, outcomes = measurement.forecast, measurement.outcomes
    worst = utilities.worst_of(forecast, outcomes, measurement.errors(utilities)[0])
    v, u = utilities.predicted_and_realized(forecast, outcomes, worst.utility)
    gain = largest_gain(v, u, None if outcomes.weights is None else outcomes.weights[0])
    # The gain under drawn labels is not measured here, so its floor is not known.
    return worst, ActingGain(**gain, utility=worst.utility, floor=float("nan"))


def _curve(
    family: str,
    batches: Sequence[Batch],
    observed: Sequence[Measurement],
    drawn: Mapping[str, Floats],
) -> ErrorCurve:
    """Return the errors of the sampled users of a family: means over the batches."""
    errors_of_batches = [
        measurement.errors(measurement.users[family])[0]
        for batch, measurement in zip(batches, observed, strict=True)
        if batch.families
    ]
    errors = np.stack(errors_of_batches).mean(axis=0)
    by_chance = drawn.get(f"{family} curve")
    if by_chance is None:
        none = np.empty(0)
        return ErrorCurve(errors, none, none, none)
    q05, q95 = np.quantile(by_chance, (0.05, 0.95), axis=0)
    # Fewer users are measured under drawn labels, so their sorted errors are interpolated.
    places = np.linspace(0, 1, len(errors))
    places_of_few = np.linspace(0, 1, by_chance.shape[1])
    mean = by_chance.mean(axis=0)
    lines = [np.interp(places, places_of_few, line) for line in (mean, q05, q95)]
    return ErrorCurve(errors, *lines)


def _intervals(
    batch: Batch, observed: Measurement, floors: Mapping[str, Floats]
) -> tuple[dict[str, CalibrationInterval], CalibrationInterval | None]:
    """Return bounds on the true UC, that of the points' law.

    Returns:
        Those of each class of utilities by the key of its metric, and those of the union of all
        classes except a person's own; nothing and None without floors.
    """
    if not floors:
        return {}, None
    evidence: dict[str, Evidence] = {}
    options = observed.options
    multipliers = batch.multipliers(options.noise_seed, options.confidence)
    for metric in batch.metrics:
        utilities = metric.utilities(options)
        if utilities is not None:
            evidence[metric.key] = evidence_of(
                utilities,
                batch,
                floors[metric.key],
                options.confidence,
                multipliers,
            )
    of_all = joined([part for key, part in evidence.items() if key not in options.own])
    intervals = {key: part.interval(options.confidence) for key, part in evidence.items()}
    return intervals, of_all.interval(options.confidence)
