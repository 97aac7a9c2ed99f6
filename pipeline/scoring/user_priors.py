"""The errors of users who are drawn otherwise than uniformly, and the order of calibrators.

metrics/priors.py has the priors. For each, the eCDF of the users' UC is that of the paper's
section 4, a mean over splits. The order of the calibrators is that of their median errors.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kendalltau

from utility_calibration.metrics.forecast import Forecast, Outcomes
from utility_calibration.metrics.priors import linear_users, rank_users
from utility_calibration.metrics.shown import levels, thin
from utility_calibration.metrics.utilities.base import UtilityClass

from ..harness.settings import Users

Floats = NDArray[np.float64]
FAMILIES = ("linear", "rank")
CURVE_POINTS = 41
"""Levels of a stored eCDF."""
CURVE_COLUMNS = ("prior", "family", "calibrator", "level", "error", "floor_low", "floor_high")
MEDIAN_COLUMNS = ("prior", "family", "calibrator", "split", "median")
TAU_COLUMNS = ("family", "prior", "other", "tau", "same_first")
Errors = Mapping[tuple[str, str], Floats]
"""By prior and family the sorted errors of the users, [M], or under R draws [R, M]."""


def users_of(prior: str, classes: int, shares: Floats, options: Users) -> dict[str, UtilityClass]:
    """The users of a prior by family; the same for every split and calibrator."""
    size = options.utilities, classes
    return {
        "linear": linear_users(prior, *size, options.seed, shares),
        "rank": rank_users(prior, *size, options.seed + 1),
    }


def errors_of(
    forecast: Forecast, outcomes: Outcomes, shares: Floats, options: Users
) -> dict[tuple[str, str], Floats]:
    """The sorted errors of each prior and family under every draw of the labels: [R, M]."""
    errors = {}
    for prior in options.priors:
        users = users_of(prior, forecast.classes, shares, options)
        for family, utilities in users.items():
            errors[prior, family] = np.sort(utilities.errors(forecast, outcomes), axis=1)
    return errors


def curve_frame(
    by_calibrator: Mapping[str, Sequence[Errors]], noise: Sequence[Errors], floor_of: str
) -> pd.DataFrame:
    """The eCDFs at CURVE_POINTS levels: CURVE_COLUMNS, means over splits.

    noise: of each split under drawn labels. Its 5 % and 95 % quantiles of the mean over the splits
    are the floor, in the rows of the calibrator `floor_of`.
    """
    frames = []
    for calibrator, splits in by_calibrator.items():
        for prior, family in splits[0]:
            errors = np.mean([each[prior, family] for each in splits], axis=0)
            chosen = thin(len(errors), CURVE_POINTS)
            low = high = np.full(len(chosen), np.nan)
            if noise and calibrator == floor_of:
                draws = np.mean([each[prior, family] for each in noise], axis=0)
                low, high = np.quantile(draws[:, chosen], (0.05, 0.95), axis=0)
            curve = {
                "level": levels(len(errors))[chosen],
                "error": errors[chosen],
                "floor_low": low,
                "floor_high": high,
            }
            labels = {"prior": prior, "family": family, "calibrator": calibrator}
            frames.append(pd.DataFrame(curve).assign(**labels))
    return pd.concat(frames, ignore_index=True)[list(CURVE_COLUMNS)]


def median_frame(by_calibrator: Mapping[str, Sequence[Errors]]) -> pd.DataFrame:
    """The median error of the users of each prior, family, calibrator and split."""
    rows: list[dict[str, Any]] = []
    for calibrator, splits in by_calibrator.items():
        for split, each in enumerate(splits):
            for (prior, family), errors in each.items():
                row = {"prior": prior, "family": family, "calibrator": calibrator}
                rows.append({**row, "split": split, "median": float(np.median(errors))})
    return pd.DataFrame(rows)[list(MEDIAN_COLUMNS)]


def tau_frame(medians: pd.DataFrame) -> pd.DataFrame:
    """Kendall's τ of the order of the calibrators between two priors: TAU_COLUMNS.

    It is the mean over the splits of the τ in each. A row whose priors are equal has the mean τ
    between two splits of this prior: what other test points change in the order. `same_first` is
    the share of cases in which both orders have the same best calibrator.
    """
    rows = []
    for family, of_family in medians.groupby("family", sort=False):
        wide = of_family.pivot_table("median", "calibrator", ["prior", "split"], sort=False)
        priors = list(dict.fromkeys(of_family["prior"]))
        splits = list(dict.fromkeys(of_family["split"]))
        for prior in priors:
            pairs = [(wide[prior, a], wide[prior, b]) for a, b in combinations(splits, 2)]
            rows.append(_tau_row(str(family), prior, prior, pairs))
        for prior, other in combinations(priors, 2):
            pairs = [(wide[prior, split], wide[other, split]) for split in splits]
            rows.append(_tau_row(str(family), prior, other, pairs))
    return pd.DataFrame(rows, columns=list(TAU_COLUMNS))


def _tau_row(
    family: str, prior: str, other: str, pairs: Sequence[tuple[pd.Series, pd.Series]]
) -> dict[str, Any]:
    taus = [float(kendalltau(one, another).statistic) for one, another in pairs]
    first = [one.idxmin() == another.idxmin() for one, another in pairs]
    return {
        "family": family,
        "prior": prior,
        "other": other,
        "tau": float(np.mean(taus)) if taus else np.nan,
        "same_first": float(np.mean(first)) if first else np.nan,
    }
