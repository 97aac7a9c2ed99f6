"""Every number that the paper reports about one forecast, and how much of it is noise.

Even a perfectly calibrated classifier has positive errors on a finite sample: the noise floor, the
metric under labels drawn from the forecast itself. An observed error within that range does not
speak against calibration. The scorecard also says what the points imply for other points: a
certificate for the true UC (`metrics/certificate.py`), and the metric under resampled points.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .acting import largest_gain
from .arrays import Array
from .certificate import CalibrationInterval, Evidence, evidence_of, joined
from .forecast import Forecast, Outcomes
from .measurement import Measurement, Options, sampled_users
from .option_checks import check_known
from .registry import METRICS, PURPOSES, metrics_of
from .resampling import Floats, NoiseFloor, bootstrap_draws, floor_draws, means
from .samples import Sample, in_batches, sample_of
from .scores import zero_likelihoods
from .shown import ALL_CLASSES
from .utilities.base import UtilityClass

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Scorecard:
    """The metrics of one forecast.

    Attributes:
        metrics: value per key of `utility_calibration.metrics.METRICS`.
        noise_floor: for each calibration error "mean" and 95 % quantile "q95" under labels drawn
            from the forecast, and "p_value", how often a calibrated forecast has as large an error;
            empty without redrawn labels.
        worst: for each utility metric the worst utility and its interval ("utility", "low", "high",
            "sign", "error"); "utility" counts from 0 within the class. What a user of this utility
            gains by another threshold is "gain", with "threshold" and "act_from"
            (metrics/acting.py).
        ecdf: "linear" and "rank": UC of each sampled utility, [M], in the order of the sample; and
            "<family>_floor_mean", "_q05", "_q95": sorted errors under drawn labels, [M],
            interpolated from those of `floor_utilities` utilities.
        draws: "floor_<key>": the metric under each draw of the labels, [R]; "bootstrap_<key>":
            under resampled points, [B]. Equal positions of two splits or methods belong together.
        certificates: bounds on the true value of each utility metric, and under "all" those of all
            classes together except the user's; empty without redrawn labels, and if utility metrics
            are means over batches.
        zero_likelihood: number of points whose label had probability 0; the NLL has a floor for
            them.
    """

    metrics: dict[str, float]
    noise_floor: dict[str, dict[str, float]]
    worst: dict[str, dict[str, float]]
    ecdf: dict[str, Floats] = field(default_factory=dict)
    draws: dict[str, Floats] = field(default_factory=dict)
    certificates: dict[str, CalibrationInterval] = field(default_factory=dict)
    zero_likelihood: int = 0

    def report(self) -> None:
        """Print the verdict: for each purpose the error, the error by chance alone, and a bound.

        A purpose is within noise if its error is at most the 95 % quantile of the errors that a
        perfectly calibrated forecast with these probabilities has. The bound holds for fresh points
        of the same kind with the confidence of the certificates, 95 % by default.
        """
        print(self)

    def __repr__(self) -> str:
        metrics, floors = self.metrics, self.noise_floor
        uses = {key: use for key, use in PURPOSES.items() if key in metrics}
        uses |= {key: key for key in metrics if key not in METRICS}  # your own utilities
        wide = max(18, *(len(use) + 2 for use in uses.values()))
        within = [uses[k] for k in uses if k in floors and metrics[k] <= floors[k]["q95"]]
        beyond = [uses[k] for k in uses if k in floors and uses[k] not in within]
        verdicts = {"within noise of perfectly calibrated": within, "beyond noise": beyond}
        said = "; ".join(f"{what} for {', '.join(few)}" for what, few in verdicts.items() if few)
        unknown = "not compared with chance: no labels were redrawn"
        lines = [f"{(said or unknown).capitalize()}.", ""]
        lines.append(f"{'use':<{wide}}{'error':>9}{'by chance':>12}{'at most':>10}")
        for key, use in uses.items():
            floor = f"{floors[key]['q95']:.4f}" if key in floors else "–"
            bound = f"{self.certificates[key].upper:.4f}" if key in self.certificates else "–"
            lines.append(f"{use:<{wide}}{metrics[key]:>9.4f}{floor:>12}{bound:>10}")
        note = 'Observed errors up to the column "by chance" cannot be told from chance.'
        lines += ["", note] if floors else []
        scores = [f"{METRICS[key].text} {metrics[key]:.4f}" for key in ("accuracy", "brier", "nll")]
        return "\n".join([*lines, "", ", ".join(scores)])

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it: its lines of several columns are a table."""
        parts = []
        for block in repr(self).split("\n\n"):
            heading, *rows = [re.split(" {2,}", html.escape(line)) for line in block.splitlines()]
            if len(heading) == 1:
                parts.append(f"<p>{' '.join(heading)}</p>")
                continue
            lines = ["<th>" + "<th>".join(heading), *("<td>" + "<td>".join(row) for row in rows)]
            parts.append("<table><tr>" + "<tr>".join(lines) + "</table>")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers by name, as MLflow, Weights & Biases and a Trainer take them.

        Beside each metric `<key>` are, where they were computed, `<key>_by_chance` (the 95 %
        quantile of its noise floor), `<key>_p_value` and `<key>_upper`, the bound on fresh points.
        """
        numbers: dict[str, float] = {}
        for key, row in self._rows().items():
            values = (row["value"], row.get("q95"), row.get("p_value"), row.get("upper"))
            names = (key, f"{key}_by_chance", f"{key}_p_value", f"{key}_upper")
            numbers |= {n: float(v) for n, v in zip(names, values, strict=True) if v is not None}
        return numbers

    def frame(self) -> pd.DataFrame:
        """Return a data frame with a row per metric; what does not apply to a metric is NaN.

        Columns: value; mean, q95 and p_value of the noise floor; lower and upper bound on the true
        value; the number of the worst utility, and low, high, sign and error of its interval.
        """
        import pandas as pd  # it takes half a second

        return pd.DataFrame.from_dict(self._rows(), orient="index").rename_axis("metric")

    def _rows(self) -> dict[str, dict[str, float]]:
        rows = {}
        for key, value in self.metrics.items():
            bounds, found = {}, self.certificates.get(key)
            if found is not None:
                bounds = {"lower": found.lower, "upper": found.upper}
            floor, worst = self.noise_floor.get(key, {}), self.worst.get(key, {})
            rows[key] = {"value": value, **floor, **bounds, **worst}
        return rows


def scorecard(
    probabilities: ArrayLike,
    labels: ArrayLike,
    options: Options | None = None,
    *,
    rows_sum_to_one: bool = True,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    points: ArrayLike | None = None,
    population: int | None = None,
    classes: ArrayLike | None = None,
    ignore_index: int | str | None = None,
    **changes: Any,
) -> Scorecard:
    """Compute all metrics, their noise floor and the eCDFs of U_lin and U_rank.

    Args:
        probabilities, labels: [n, C] and [n].
        options: what is measured and how; `Options()` if not given.
        rows_sum_to_one: False admits rows with other sums, as isotonic regression may give them.
            Labels cannot be drawn from such rows, so there are no noise floor and no certificates.
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times, but not as more
            evidence: certificates and intervals are as wide as for n points.
        clusters: [n], text or numbers: points of one cluster need not be independent. With a
            `population`, their numbers in the whole data set, from 0.
        points: [n], the number of each point in the whole data set; 0 … n - 1 if not given. A point
            draws its label from the same uniforms in all splits.
        population: the number of points in the whole data set, or of clusters if there are any,
            which the bootstrap resamples; those given here, if it is None.
        classes, ignore_index: as in `accuracy`.
        **changes: fields of `options` by name:
            `scorecard(p, y, utilities=0, bootstrap_repetitions=200)`.
    """
    check_known(changes, [entry.name for entry in fields(Options)], "scorecard", "option")
    options = replace(options or Options(), **changes)
    whole = sample_of(
        probabilities,
        labels,
        sample_weight=sample_weight,
        classes=classes,
        clusters=clusters,
        points=points,
        population=population,
        rows_sum_to_one=rows_sum_to_one,
        ignore_index=ignore_index,
    )
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
    metrics, measured = whole.metrics, means(map(_measured, samples, observed))
    values = {metric.key: float(measured[metric.key][0]) for metric in metrics}
    floors = {key: drawn[key] for key in values if key in drawn}
    worst, ecdf = {}, {}
    for metric in metrics:
        utilities = metric.utilities(observed[0].options)
        if utilities is not None:  # in the batch of the largest error
            of_batches = [m for s, m in zip(samples, observed, strict=True) if metric in s.metrics]
            batch = max(of_batches, key=lambda m: float(m.errors(utilities).max()))
            errors = batch.errors(utilities)[0]
            index, interval = utilities.worst_of(batch.forecast, batch.outcomes, errors)
            gain = _gain(utilities, batch, index)
            worst[metric.key] = {"utility": index, **interval._asdict(), **gain}
    for family in whole.families:
        batches = [m for s, m in zip(samples, observed, strict=True) if s.families]
        of_users = [m.errors(m.users[family])[0] for m in batches]
        ecdf[family] = np.stack(of_users).mean(axis=0)
        by_chance = drawn.get(f"{family} curve")
        if by_chance is not None:
            q05, q95 = np.quantile(by_chance, (0.05, 0.95), axis=0)
            for name, line in {"mean": by_chance.mean(axis=0), "q05": q05, "q95": q95}.items():
                places, known = np.linspace(0, 1, len(ecdf[family])), np.linspace(0, 1, len(line))
                ecdf[f"{family}_floor_{name}"] = np.interp(places, known, line)
    return Scorecard(
        metrics=values,
        noise_floor={
            key: NoiseFloor.of(draws, values[key])._asdict() for key, draws in floors.items()
        },
        worst=worst,
        ecdf=ecdf,
        draws={f"floor_{key}": draws for key, draws in floors.items()}
        | {f"bootstrap_{key}": resampled[key] for key in values if key in resampled},
        certificates=_certificates(whole, observed[0], floors) if len(samples) == 1 else {},
        zero_likelihood=int(zero_likelihoods(whole.forecast, whole.outcomes)[0]),
    )


def _gain(utilities: UtilityClass, batch: Measurement, index: int) -> dict[str, float]:
    weights = batch.outcomes.weights
    points = utilities.predicted_and_realized(batch.forecast, batch.outcomes, index)
    given = points if weights is None else (*points, weights[0])
    return largest_gain(*given)


def _certificates(
    sample: Sample, observed: Measurement, floors: Mapping[str, Floats]
) -> dict[str, CalibrationInterval]:
    """Return bounds on the true UC of each class, and of all except the user's together."""
    if not floors:
        return {}
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
    of_all = [part for key, part in evidence.items() if key not in options.own]
    evidence[ALL_CLASSES] = joined(of_all)
    return {key: part.interval(options.confidence) for key, part in evidence.items()}
