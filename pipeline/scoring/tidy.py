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
    from utility_calibration.metrics.resampling import NoiseFloor

    keys: dict[str, None] = {}  # in the order of the tables
    for scored in splits:
        keys |= dict.fromkeys([*scored.record["metrics"], *scored.record["certificates"]])
    rows = [
        {
            "split": split,
            "metric": key,
            "value": record["metrics"].get(key),
            **{
                name: record["noise_floor"].get(key, {}).get(entry) for name, entry in FLOOR.items()
            },
            **_interval(record["worst"].get(key)),
            **record["certificates"].get(key, {}),
            "n_test": record["n_test"],
            "zero_likelihood": record["zero_likelihood"] if key == "nll" else None,
        }
        for split, record, _ in splits
        for key in keys
    ]
    for place, key in enumerate(keys):
        of_splits = rows[place : len(splits) * len(keys) : len(keys)]
        whole = {"split": ALL_SPLITS, "metric": key, "n_test": of_splits[0]["n_test"]}
        for name in MEANS:
            numbers = [row[name] for row in of_splits if row.get(name) is not None]
            whole[name] = float(np.mean(numbers)) if numbers else None
        redrawn = mean_draws(splits, f"floor_{key}")
        resampled = mean_draws(splits, f"bootstrap_{key}")
        if redrawn is not None and whole["value"] is not None:
            floor = NoiseFloor.of(redrawn, whole["value"])
            whole |= {name: getattr(floor, entry) for name, entry in FLOOR.items()}
        if resampled is not None:
            whole["half_width"] = bootstrap_half_width(resampled)
        rows.append(whole | _interval(worst.get(key)))
    return [{"calibrator": calibrator, "group": group} | row for row in rows]


def _interval(worst: Mapping[str, Any] | None) -> Row:
    """The worst interval and the gain of a class of utilities; nothing for a metric without."""
    if worst is None:
        return {}
    sign = int(worst["sign"] if "sign" in worst else np.sign(worst["gap"]))
    interval = {f"worst_{name}": worst[name] for name in ("utility", "low", "high")}
    never = float("inf")  # JSON has no infinity
    act_from = never if worst["act_from"] is None else worst["act_from"]
    gain = {"gain": worst["gain"], "threshold": worst["threshold"], "act_from": act_from}
    return interval | {"worst_sign": sign} | gain


def mean_draws(splits: Sequence[Scored], name: str, ordered: bool = False) -> Floats | None:
    """Mean over splits, by repetition or (`ordered`) by quantile, [R]; None without draws."""
    draws = [np.asarray(scored.arrays.get(name, ()), dtype=np.float64) for scored in splits]
    if not all(map(len, draws)):
        return None
    return np.asarray(np.mean(np.sort(draws) if ordered else draws, axis=0))


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
        shown = thin(len(errors), CURVE_POINTS)
        at = levels(len(errors))[shown]
        texts = {"calibrator": calibrator, "group": group, "family": family}
        curve = {"level": at, "error": errors[shown]}
        for end, quantile in (("low", "q05"), ("high", "q95")):
            floor = mean_draws(splits, f"{family}_floor_{quantile}", ordered=True)
            curve[f"floor_{end}"] = at * np.nan
            if floor is not None:
                curve[f"floor_{end}"] = np.interp(at, levels(len(floor)), floor)
        for name, text in texts.items():
            columns[name] += len(at) * [text]
        for name, numbers in curve.items():
            columns[name] += numbers.tolist()
    return columns
