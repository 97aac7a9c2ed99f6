"""The utility-risk gap of Proposition 3.1 beside UC, before and after calibration.

A user acts where the predicted utility v is at least a threshold t. Acting although u < t, or not
acting although u >= t, costs |u - t|. The risk gap is how much this risk would fall for the best
monotone map of v: acting on h(v) is acting on an upper set of v. We take the threshold with the
largest gap, which `metrics/acting.py` finds in O(n log n). The paper bounds the gap by 2 UC. As
both sets are upper ones, they differ by one interval, so that UC itself is a bound.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from utility_calibration.metrics import ClassWise, Linear, Rank, TopK
from utility_calibration.metrics.acting import acting_gains
from utility_calibration.metrics.forecast import Forecast, Outcomes
from utility_calibration.metrics.utilities.base import UtilityClass
from utility_calibration.metrics.utilities.payoffs import DiscountedCumulativeGain

from ..harness.settings import Users
from .inference import corrected_half_width

Floats = NDArray[np.float64]
ALL_METHODS = "all methods"
"""The `calibrator` of the correlations over the users of all calibrators of a split."""
NOISE = "noise floor"
"""The `calibrator` of rows under labels that are drawn from a forecast."""
UTILITY_COLUMNS = ("calibrator", "kind", "utility", "uc", "gap")
SPLIT_COLUMNS = (
    *("calibrator", "split", "worst_uc", "largest_gap", "largest_ratio"),
    *("spearman", "pearson"),
)


class Measured(NamedTuple):
    """UC and risk gap of each user: [m] each. Under R draws of the labels: [R, m] each."""

    uc: Floats
    gap: Floats


def risk_users(classes: int, options: Users) -> dict[str, UtilityClass]:
    """The users whose risk gap is measured, by kind; the same in all splits."""
    most = min(options.shortlists, classes - 1)  # all classes together are always right
    return {
        "single classes": ClassWise(),
        "shortlists": TopK(range(1, most + 1)),
        "graded gains": DiscountedCumulativeGain(),
        "paid by class": Linear.sample(options.sampled, classes, options.seed),
        "paid by rank": Rank.sample(options.sampled, classes, options.seed + 1),
    }


def measured(users: Mapping[str, UtilityClass], forecast: Forecast, outcomes: Outcomes) -> Measured:
    """UC and risk gap of all users under every draw of the labels: [R, m] each."""
    kinds = list(users.values())
    errors = [kind.errors(forecast, outcomes) for kind in kinds]
    gaps = [acting_gains(kind, forecast, outcomes)[:, :, 0] for kind in kinds]
    return Measured(np.concatenate(errors, axis=1), np.concatenate(gaps, axis=1))


def utility_frame(
    by_calibrator: Mapping[str, Sequence[Measured]],
    noise: Sequence[Measured],
    users: Mapping[str, UtilityClass],
    classes: int,
) -> pd.DataFrame:
    """A row per calibrator and user: UTILITY_COLUMNS, means over splits, and over draws of NOISE.

    by_calibrator: of each split; noise: of each split [R, m], empty without a floor.
    """
    sizes = {kind: utilities.count(classes) for kind, utilities in users.items()}
    names = [(kind, number) for kind, size in sizes.items() for number in range(size)]
    means = {
        name: (mean_of([each.uc for each in splits]), mean_of([each.gap for each in splits]))
        for name, splits in by_calibrator.items()
    }
    if noise:
        flat = [(each.uc.mean(axis=0), each.gap.mean(axis=0)) for each in noise]
        means[NOISE] = mean_of([uc for uc, _ in flat]), mean_of([gap for _, gap in flat])
    frames = []
    for calibrator, (uc, gap) in means.items():
        table = pd.DataFrame(names, columns=["kind", "utility"])
        frames.append(table.assign(calibrator=calibrator, uc=uc, gap=gap))
    return pd.concat(frames, ignore_index=True)[list(UTILITY_COLUMNS)]


def mean_of(parts: Sequence[Floats]) -> Floats:
    """The mean of equally long arrays, entry by entry."""
    return np.asarray(np.mean(parts, axis=0))


def split_frame(
    by_calibrator: Mapping[str, Sequence[Measured]], noise: Sequence[Measured]
) -> pd.DataFrame:
    """A row per calibrator and split: SPLIT_COLUMNS.

    ALL_METHODS has the correlations over the users of all calibrators together, and NOISE the means
    over the draws of the split.
    """
    rows = []
    for calibrator, splits in by_calibrator.items():
        for split, one in enumerate(splits):
            rows.append({"calibrator": calibrator, "split": split, **summary(one)})
    for split, together in enumerate(zip(*by_calibrator.values(), strict=True)):
        joined = Measured(*(np.concatenate(parts) for parts in zip(*together, strict=True)))
        rows.append({"calibrator": ALL_METHODS, "split": split, **summary(joined)})
    for split, draws in enumerate(noise):
        of_draws = pd.DataFrame([summary(Measured(*pair)) for pair in zip(*draws, strict=True)])
        rows.append({"calibrator": NOISE, "split": split, **of_draws.mean()})
    return pd.DataFrame(rows)[list(SPLIT_COLUMNS)]


def summary(one: Measured) -> dict[str, float]:
    """The largest UC, gap and ratio of gap to UC of any user, and two correlations over users."""
    clear = one.uc > 0
    return {
        "worst_uc": float(one.uc.max()),
        "largest_gap": float(one.gap.max()),
        "largest_ratio": float((one.gap[clear] / one.uc[clear]).max()) if clear.any() else 0.0,
        **correlations(one.uc, one.gap),
    }


def correlations(one: Floats, other: Floats) -> dict[str, float]:
    """Spearman's and Pearson's correlation; NaN where one of both is constant."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return {"spearman": np.nan, "pearson": np.nan}
    return {
        "spearman": float(spearmanr(one, other).statistic),
        "pearson": float(pearsonr(one, other).statistic),
    }


def over_splits(frame: pd.DataFrame, test_share: float) -> pd.DataFrame:
    """The mean of every number of SPLIT_COLUMNS over the splits, and `<name>_half_width`.

    The half-width is that of the 95 % interval for splits that share points (inference.py).
    """
    numbers = [name for name in SPLIT_COLUMNS if name not in ("calibrator", "split")]
    rows = []
    for calibrator, splits in frame.groupby("calibrator", sort=False):
        row: dict[str, Any] = {"calibrator": calibrator, "splits": len(splits)}
        for name in numbers:
            values = splits[name].to_numpy()
            row[name] = float(values.mean())
            row[f"{name}_half_width"] = corrected_half_width(values, test_share)
        rows.append(row)
    return pd.DataFrame(rows)
