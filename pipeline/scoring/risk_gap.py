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
from utility_calibration.metrics.utilities.standard import DiscountedCumulativeGain

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
        "rankings": DiscountedCumulativeGain(),
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
    names: list[tuple[str, int]] = []
    for kind, utilities in users.items():
        names += [(kind, number) for number in range(utilities.count(classes))]
    means = {name: mean_of(splits) for name, splits in by_calibrator.items()}
    if noise:
        over_draws = [Measured(each.uc.mean(axis=0), each.gap.mean(axis=0)) for each in noise]
        means[NOISE] = mean_of(over_draws)
    frames = []
    for calibrator, mean in means.items():
        table = pd.DataFrame(names, columns=["kind", "utility"])
        frames.append(table.assign(calibrator=calibrator, uc=mean.uc, gap=mean.gap))
    return pd.concat(frames, ignore_index=True)[list(UTILITY_COLUMNS)]


def mean_of(splits: Sequence[Measured]) -> Measured:
    """The mean over splits, user by user."""
    uc = np.mean([measured.uc for measured in splits], axis=0)
    gap = np.mean([measured.gap for measured in splits], axis=0)
    return Measured(np.asarray(uc), np.asarray(gap))


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
    for split, of_calibrators in enumerate(zip(*by_calibrator.values(), strict=True)):
        uc = np.concatenate([measured.uc for measured in of_calibrators])
        gap = np.concatenate([measured.gap for measured in of_calibrators])
        joined = Measured(uc, gap)
        rows.append({"calibrator": ALL_METHODS, "split": split, **summary(joined)})
    for split, draws in enumerate(noise):
        pairs = zip(draws.uc, draws.gap, strict=True)
        summaries = pd.DataFrame([summary(Measured(uc, gap)) for uc, gap in pairs])
        rows.append({"calibrator": NOISE, "split": split, **summaries.mean()})
    return pd.DataFrame(rows)[list(SPLIT_COLUMNS)]


def summary(one: Measured) -> dict[str, float]:
    """The largest UC, gap and ratio of gap to UC of any user, and two correlations over users."""
    has_error = one.uc > 0  # a ratio to nothing is none
    ratios = one.gap[has_error] / one.uc[has_error]
    return {
        "worst_uc": float(one.uc.max()),
        "largest_gap": float(one.gap.max()),
        "largest_ratio": float(ratios.max(initial=0.0)),
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
