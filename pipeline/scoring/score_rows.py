"""The scores of one calibrator over all splits as tidy rows, and its eCDFs as levels.

A row of one split has the numbers of its evaluation. A row of `all` splits has the mean over the
splits, the noise floor and p-value of this mean (repetition by repetition, because the splits share
their points), the half-width of its bootstrap interval, and the means of the certificates.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.shown import levels, thin

from .files import ALL_SPLITS, CURVE_COLUMNS
from .inference import FEWEST_SPLITS, bootstrap_half_width

Floats = NDArray[np.float64]
Row = dict[str, Any]
FAMILIES = ("linear", "rank")  # of sampled users
CURVE_POINTS = 121  # number of levels of a stored eCDF: as many as the page draws
MEANS = ("value", "estimate", "lower", "upper", "upper_finite", "zero_likelihood")
"""Columns whose value for all splits is the mean over the splits."""
FLOOR = {"floor_mean": "mean", "floor_q95": "q95", "p_value": "p_value"}
"""The columns of a noise floor, and what it calls them."""


class Scored(NamedTuple):
    """One evaluated split: the record and the arrays of its npz (scoring.held_out)."""

    split: int
    record: Mapping[str, Any]
    arrays: Mapping[str, Floats]


def rows_of(
    calibrator: str,
    splits: Sequence[Scored],
    worst: Mapping[str, Mapping[str, Any]],
    group: str = "",
) -> list[Row]:
    """The rows of every split and metric, then those of all splits, of a `group` or of all points.

    `worst`: per utility metric the worst interval over all splits (scoring.across_splits).
    """
    keys: dict[str, None] = {}  # in the order of the tables
    for scored in splits:
        keys |= dict.fromkeys([*scored.record["metrics"], *scored.record["certificates"]])
    rows: list[Row] = []
    for scored in splits:
        rows += [_row_of_split(scored, key) for key in keys]
    means = []
    for key in keys:
        of_metric = [row for row in rows if row["metric"] == key]
        means.append(_row_of_all(splits, of_metric, worst.get(key)))
    return [{"calibrator": calibrator, "group": group, **row} for row in [*rows, *means]]


def _row_of_split(scored: Scored, key: str) -> Row:
    """The row of one split and metric."""
    record = scored.record
    floor = record["noise_floor"].get(key, {})
    return {
        "split": scored.split,
        "metric": key,
        "value": record["metrics"].get(key),
        **{column: floor.get(entry) for column, entry in FLOOR.items()},
        **_interval(record["worst"].get(key)),
        **record["certificates"].get(key, {}),
        "n_test": record["n_test"],
        # Points whose label had probability 0 belong to the metric that they make infinite.
        "zero_likelihood": record["zero_likelihood"] if key == "nll" else None,
    }


def _row_of_all(
    splits: Sequence[Scored], rows: Sequence[Row], worst: Mapping[str, Any] | None
) -> Row:
    """The row of all splits of one metric, from its `rows` of single splits."""
    from utility_calibration.metrics.resampling import NoiseFloor

    key = rows[0]["metric"]
    whole: Row = {"split": ALL_SPLITS, "metric": key, "n_test": rows[0]["n_test"]}
    for column in MEANS:
        numbers = [row[column] for row in rows if row.get(column) is not None]
        whole[column] = float(np.mean(numbers)) if numbers else None
    redrawn = mean_draws(splits, f"floor_{key}")
    if redrawn is not None and whole["value"] is not None:
        floor = NoiseFloor.of(redrawn, whole["value"])
        whole |= {column: getattr(floor, entry) for column, entry in FLOOR.items()}
    resampled = mean_draws(splits, f"bootstrap_{key}")
    if resampled is not None:
        whole["half_width"] = bootstrap_half_width(resampled)
    return whole | _interval(worst)


def _interval(worst: Mapping[str, Any] | None) -> Row:
    """The worst interval and the gain of a class of utilities; nothing for a metric without."""
    if worst is None:
        return {}
    never = float("inf")  # JSON has no infinity, so the record has None
    return {
        "worst_utility": worst["utility"],
        "worst_low": worst["low"],
        "worst_high": worst["high"],
        "worst_sign": int(worst["sign"] if "sign" in worst else np.sign(worst["gap"])),
        "gain": worst["gain"],
        "threshold": worst["threshold"],
        "act_from": never if worst["act_from"] is None else worst["act_from"],
    }


def mean_draws(splits: Sequence[Scored], name: str, ordered: bool = False) -> Floats | None:
    """Mean over splits, by repetition or (`ordered`) by quantile, [R]; None without draws."""
    draws = [np.asarray(scored.arrays.get(name, ()), dtype=np.float64) for scored in splits]
    if any(len(of_split) == 0 for of_split in draws):
        return None
    if ordered:
        draws = [np.sort(of_split) for of_split in draws]
    return np.asarray(np.mean(draws, axis=0))


def draws_of(splits: Sequence[Scored]) -> dict[str, list[float]]:
    """By metric the mean over splits under resampled points, [B]; {} where tests need none."""
    if len(splits) >= FEWEST_SPLITS:
        return {}
    drawn = {key: mean_draws(splits, f"bootstrap_{key}") for key in splits[0].record["metrics"]}
    return {key: draws.tolist() for key, draws in drawn.items() if draws is not None}


def curves_of(calibrator: str, splits: Sequence[Scored], group: str = "") -> dict[str, list[Any]]:
    """The eCDF of each family of sampled users at CURVE_POINTS levels, and its noise floor.

    The M sorted errors of a split are the quantile function of its eCDF (section 3). The curve is
    the mean of these functions, because pooling all errors would add the scatter between splits.
    The floor may come from fewer users, so it is interpolated. The result is a table's columns.
    """
    columns: dict[str, list[Any]] = {name: [] for name in CURVE_COLUMNS}
    for family in FAMILIES:
        errors = mean_draws(splits, family, ordered=True)
        if errors is None:
            continue
        places = thin(len(errors), CURVE_POINTS)
        level = levels(len(errors))[places]
        texts = {"calibrator": calibrator, "group": group, "family": family}
        curve = {"level": level, "error": errors[places]}
        for column, quantile in (("floor_low", "q05"), ("floor_high", "q95")):
            floor = mean_draws(splits, f"{family}_floor_{quantile}", ordered=True)
            curve[column] = np.full(len(level), np.nan)
            if floor is not None:
                curve[column] = np.interp(level, levels(len(floor)), floor)
        for column, text in texts.items():
            columns[column] += [text] * len(level)
        for column, numbers in curve.items():
            columns[column] += numbers.tolist()
    return columns
