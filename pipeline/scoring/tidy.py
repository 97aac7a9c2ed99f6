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

from metrics import NoiseFloor
from metrics.ecdf import levels, thin
from pipeline.scoring.files import ALL_SPLITS
from pipeline.scoring.inference import FEWEST_SPLITS, bootstrap_half_width

Floats = NDArray[np.float64]
Row = dict[str, Any]
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
        worst: per utility metric the worst interval over all splits (scoring.across_splits).
        group: of points, empty for all points.
    """
    records = [scored.record for scored in splits]
    keys = list(dict.fromkeys(k for r in records for k in (*r["metrics"], *r["certificates"])))
    rows = [_of_split(scored, key) for scored in splits for key in keys]
    for place, key in enumerate(keys):
        together = _of_all(splits, rows[place : len(splits) * len(keys) : len(keys)], key)
        rows.append({"split": ALL_SPLITS, "metric": key} | together | _interval(worst.get(key)))
    return [{"calibrator": calibrator, "group": group} | row for row in rows]


def _of_split(scored: Scored, key: str) -> Row:
    record = scored.record
    floor = record["noise_floor"].get(key, {})
    return {
        "split": scored.split,
        "metric": key,
        "value": record["metrics"].get(key),
        "floor_mean": floor.get("mean"),
        "floor_q95": floor.get("q95"),
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
    sign = int(worst["sign"] if "sign" in worst else np.sign(worst["gap"]))
    interval = {f"worst_{name}": worst[name] for name in ("utility", "low", "high")}
    return interval | {"worst_sign": sign}


def _of_all(splits: Sequence[Scored], rows: Sequence[Row], key: str) -> Row:
    """The means over splits, and the floor and the interval of the mean of `value`."""
    names = ("value", *CERTIFICATE, "zero_likelihood")
    means: Row = {name: _mean(row.get(name) for row in rows) for name in names}
    together = means | {"n_test": rows[0]["n_test"]}
    redrawn, resampled = (_mean_draws(splits, f"{kind}_{key}") for kind in ("floor", "bootstrap"))
    if redrawn is not None and means["value"] is not None:
        floor = NoiseFloor.of(redrawn, means["value"])
        together |= {"floor_mean": floor.mean, "floor_q95": floor.q95, "p_value": floor.p_value}
    if resampled is not None:
        together["half_width"] = bootstrap_half_width(resampled)
    return together


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(np.mean(numbers)) if numbers else None


def _mean_draws(splits: Sequence[Scored], name: str, ordered: bool = False) -> Floats | None:
    """Mean over splits, repetition by repetition, [R]; None where a split has no draws.

    ordered: the draws of each split are sorted first, so it is the mean quantile function.
    """
    draws = [np.asarray(scored.arrays.get(name, ()), dtype=np.float64) for scored in splits]
    if not all(map(len, draws)):
        return None
    return np.asarray(np.mean(np.sort(draws) if ordered else draws, axis=0))


def draws_of(splits: Sequence[Scored]) -> dict[str, list[float]]:
    """By metric the mean over splits under resampled points, [B]; {} where tests need none.

    The differences of two methods' draws are the bootstrap of their difference, because all methods
    are measured on the same resampled points.
    """
    if len(splits) >= FEWEST_SPLITS:
        return {}
    drawn = {key: _mean_draws(splits, f"bootstrap_{key}") for key in splits[0].record["metrics"]}
    return {key: draws.tolist() for key, draws in drawn.items() if draws is not None}


def curves_of(calibrator: str, splits: Sequence[Scored], group: str = "") -> list[Row]:
    """The eCDF of each family of sampled users at CURVE_POINTS levels, and its noise floor.

    The M sorted errors of a split are the quantile function of its eCDF (section 3). The curve is
    the mean of these functions: the eCDF of a typical split. Pooling all errors would add the
    scatter between splits. The floor may come from fewer users, so it is interpolated.
    """
    rows: list[Row] = []
    for family in FAMILIES:
        errors = _mean_draws(splits, family, ordered=True)
        if errors is None:
            continue
        kept = thin(len(errors), CURVE_POINTS)
        at = levels(len(errors))[kept]
        columns = {"level": at, "error": errors[kept]}
        for name, quantile in (("floor_low", "q05"), ("floor_high", "q95")):
            floor = _mean_draws(splits, f"{family}_floor_{quantile}", ordered=True)
            if floor is not None:
                columns[name] = np.interp(at, levels(len(floor)), floor)
        shared = {"calibrator": calibrator, "group": group, "family": family}
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows += [shared | dict(zip(columns, row, strict=True)) for row in values]
    return rows
