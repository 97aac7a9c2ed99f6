"""The scores of one calibrator over all splits as tidy rows, and its eCDFs as levels.

A row of one split has the numbers of its evaluation. A row of `all` splits has the mean over the
splits, the noise floor and p-value of this mean (repetition by repetition, because the splits share
their points), the half-width of its bootstrap interval, and the means of the certificates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metrics import NoiseFloor
from metrics.ecdf import levels, thin
from pipeline.scoring.files import ALL_SPLITS
from pipeline.scoring.paired import FEWEST_SPLITS

Floats = NDArray[np.float64]
Row = dict[str, Any]
CONFIDENCE = 0.95
FAMILIES = ("linear", "rank")
"""Of sampled users."""
CURVE_POINTS = 121
"""Number of levels of a stored eCDF: as many as the page draws."""
CERTIFICATE = ("estimate", "lower", "upper", "upper_finite")


class Scored(NamedTuple):
    """One evaluated split: the record and the arrays of its npz (pipeline.scoring.held_out)."""

    split: int
    record: Mapping[str, Any]
    arrays: Mapping[str, Floats]


def rows_of(
    calibrator: str,
    splits: Sequence[Scored],
    worst: Mapping[str, Mapping[str, Any]],
    group: str = "",
) -> list[Row]:
    """The rows of every split and metric, then those of all splits.

    Args:
        worst: per utility metric the worst interval over all splits (pipeline.scoring.worst).
        group: of points, empty for all points.
    """
    shared = {"calibrator": calibrator, "group": group}
    keys = dict.fromkeys(
        key
        for scored in splits
        for kind in ("metrics", "certificates")
        for key in scored.record[kind]
    )
    rows = [
        {**shared, "split": scored.split, "metric": key, **_of_split(scored.record, key)}
        for scored in splits
        for key in keys
    ]
    for key in keys:
        of_metric = [row for row in rows if row["metric"] == key]
        together = {**_of_all(splits, of_metric, key), **_interval(worst.get(key))}
        rows.append({**shared, "split": ALL_SPLITS, "metric": key, **together})
    return rows


def _of_split(record: Mapping[str, Any], key: str) -> Row:
    floor = record["noise_floor"].get(key, {})
    return {
        "value": record["metrics"].get(key),
        **{f"floor_{name}": floor.get(name) for name in ("mean", "q95")},
        "p_value": floor.get("p_value"),
        **_interval(record["worst"].get(key)),
        **record["certificates"].get(key, {}),
        "n_test": record["n_test"],
        "zero_likelihood": record["zero_likelihood"] if key == "nll" else None,
    }


def _interval(worst: Mapping[str, Any] | None) -> Row:
    """The worst interval of one class of utilities; nothing for a metric without one."""
    if worst is None:
        return {}
    sign = worst["sign"] if "sign" in worst else int(np.sign(worst["gap"]))
    return {
        "worst_utility": worst["utility"],
        "worst_low": worst["low"],
        "worst_high": worst["high"],
        "worst_sign": int(sign),
    }


def _of_all(splits: Sequence[Scored], rows: Sequence[Row], key: str) -> Row:
    """The means over splits, and the floor and the interval of the mean of `value`."""
    means = {name: _mean(row.get(name) for row in rows) for name in ("value", *CERTIFICATE)}
    together: Row = {
        **means,
        "n_test": rows[0]["n_test"],
        "zero_likelihood": _mean(row["zero_likelihood"] for row in rows),
    }
    if (redrawn := _mean_draws(splits, f"floor_{key}")) is not None and means["value"] is not None:
        floor = NoiseFloor.of(redrawn, means["value"])
        together |= {"floor_mean": floor.mean, "floor_q95": floor.q95, "p_value": floor.p_value}
    resampled = _mean_draws(splits, f"bootstrap_{key}")
    if resampled is not None and len(resampled) > 1:
        together["half_width"] = bootstrap_half_width(resampled)
    return together


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def _mean_draws(splits: Sequence[Scored], name: str) -> Floats | None:
    """Mean over splits, repetition by repetition, [R]; None where a split has no draws."""
    draws = [np.asarray(scored.arrays.get(name, ()), dtype=np.float64) for scored in splits]
    return np.asarray(np.mean(draws, axis=0)) if all(len(values) for values in draws) else None


def bootstrap_half_width(draws: Floats) -> float:
    """Half of the 95 % interval: 1.96 standard errors of the mean under resampled points, [B]."""
    return float(special.ndtri((1 + CONFIDENCE) / 2) * draws.std(ddof=1))


def draws_of(splits: Sequence[Scored]) -> dict[str, list[float]]:
    """By metric the mean over splits under resampled points, [B]; {} where tests need none.

    The differences of two methods' draws are the bootstrap of their difference, because all methods
    are measured on the same resampled points.
    """
    if len(splits) >= FEWEST_SPLITS:
        return {}
    drawn = {key: _mean_draws(splits, f"bootstrap_{key}") for key in splits[0].record["metrics"]}
    return {key: draws.tolist() for key, draws in drawn.items() if draws is not None and len(draws)}


def curves_of(calibrator: str, splits: Sequence[Scored], group: str = "") -> list[Row]:
    """The eCDF of each family of sampled users at CURVE_POINTS levels, and its noise floor.

    In each split the M sorted errors are the quantile function of that split's eCDF (section 3).
    The curve is the mean of these functions over splits, level by level: the eCDF of a typical
    split. Pooling all M x splits errors would add the scatter between splits to the width of the
    curve. The floor may come from fewer users, so its curves are interpolated at the same levels.
    """
    rows: list[Row] = []
    for family in FAMILIES:
        errors = _mean_sorted(splits, family)
        if errors is None:
            continue
        kept = thin(len(errors), CURVE_POINTS)
        at = levels(len(errors))[kept]
        columns = {"level": at, "error": errors[kept]}
        for name, quantile in (("floor_low", "q05"), ("floor_high", "q95")):
            floor = _mean_sorted(splits, f"{family}_floor_{quantile}")
            if floor is not None:
                columns[name] = np.interp(at, levels(len(floor)), floor)
        shared = {"calibrator": calibrator, "group": group, "family": family}
        rows += [
            {**shared, **{name: float(values[place]) for name, values in columns.items()}}
            for place in range(len(kept))
        ]
    return rows


def _mean_sorted(splits: Sequence[Scored], name: str) -> Floats | None:
    if not all(len(scored.arrays.get(name, ())) for scored in splits):
        return None
    return np.asarray(np.mean([np.sort(scored.arrays[name]) for scored in splits], axis=0))
