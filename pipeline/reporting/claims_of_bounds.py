"""The bounds of Proposition 3.1 and Lemma 3.3, with what we measured.

The first is checked on every user of results/users, the second on simulated points of a known law.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..scoring.choice import PRESENT
from ..scoring.risk_gap import ALL_METHODS, NOISE
from .claims import Claim, verdict
from .wording import number

Floats = NDArray[np.float64]
SHIFT = 0.1
LAW_UC = 0.4 * SHIFT + SHIFT**2 / 2
"""UC of the law of `deviations`. The chance of u = 1 is v - SHIFT for v below one half and else
v + SHIFT, cut off at 0 and 1. So the worst interval is one half of [0, 1]."""
SHARE = 0.1  # δ
SIZES = (100, 400, 1600)
REPETITIONS = 300
STUDY_COMMAND = "utility-calibration users suite=cifar"


def claims_of_bounds(users: Path, benchmarks: Sequence[str]) -> list[Claim]:
    """The claims of the `benchmarks` that were studied; `users` is results/users."""
    paths = [users / name / "risk_gap_splits.csv" for name in benchmarks]
    frames = [pd.read_csv(path) for path in paths if path.is_file()]
    if not frames:
        return []
    claims = [gap_is_bounded(frames), gap_goes_with_error(frames), sample_is_near_law()]
    return [claim for claim in claims if claim is not None]


def gap_is_bounded(frames: Sequence[pd.DataFrame]) -> Claim:
    """Whether no user of any calibrator and split has a risk gap above 2 UC."""
    rows = pd.concat(frames)
    rows = rows[~rows["calibrator"].isin([NOISE, ALL_METHODS])]
    within = int((rows["largest_ratio"] <= 2).sum())
    before = _mean_gap(rows[rows["calibrator"] == PRESENT])
    after = _mean_gap(rows[rows["calibrator"] != PRESENT])
    measured = (
        f"the largest gap of any user is {number(rows['largest_ratio'].max(), 2)} UC, in "
        f"{len(rows)} fits (benchmarks: {len(frames)}); the largest gap is {before} before "
        f"calibration and {after} after it, in the mean of fits"
    )
    statement = "A monotone map of the predicted utility saves at most 2 UC of risk."
    return Claim(statement, "Proposition 3.1", measured, verdict(within, len(rows)), STUDY_COMMAND)


def _mean_gap(rows: pd.DataFrame) -> str:
    return number(float(rows["largest_gap"].mean()), 4)


def gap_goes_with_error(frames: Sequence[pd.DataFrame]) -> Claim | None:
    """Whether users with a larger UC have a larger gap, over the users of all calibrators."""
    rows = pd.concat(frames)
    rows = rows[rows["calibrator"] == ALL_METHODS].dropna(subset=["spearman"])
    if rows.empty:
        return None
    positive = int((rows["spearman"] > 0).sum())
    measured = (
        f"Spearman's correlation of UC and gap over users is {_range(rows['spearman'])}, Pearson's "
        f"{_range(rows['pearson'])}, in {len(rows)} splits"
    )
    statement = "Users with a larger UC could save more by a monotone map."
    where = "Proposition 3.1, promised for the camera-ready version"
    return Claim(statement, where, measured, verdict(positive, len(rows)), STUDY_COMMAND)


def _range(values: pd.Series) -> str:
    low, mean, high = values.min(), values.mean(), values.max()
    return f"{number(mean, 2)} in the mean ({number(low, 2)} to {number(high, 2)})"


def sample_is_near_law() -> Claim:
    """Whether UC of n points is as near to UC of their law as the lemma says, by simulation."""
    far = {n: float(np.quantile(deviations(n), 1 - SHARE)) for n in SIZES}
    within = sum(distance <= sample_bound(n) for n, distance in far.items())
    parts = [f"{number(far[n], 4)} for n = {n:,} (bound {sample_bound(n):.2f})" for n in far]
    measured = f"the {1 - SHARE:.0%} quantile of {REPETITIONS} distances is {'; '.join(parts)}"
    statement = "UC of n points is within O(√(log(1/δ)/n)) of UC of the law."
    command = "python docs/studies/paper_statements.py"
    return Claim(statement, "Lemma 3.3", measured, verdict(within, len(SIZES)), command)


def deviations(n: int, repetitions: int = REPETITIONS) -> Floats:
    """|UC of n drawn points - UC of their law|, for every repetition."""
    from utility_calibration.metrics import utility_calibration  # with numba

    random = np.random.default_rng(n)
    v = random.random((repetitions, n))
    chance = np.clip(v + np.where(v < 0.5, -SHIFT, SHIFT), 0, 1)
    u = (random.random((repetitions, n)) < chance).astype(float)
    return np.abs(np.asarray(utility_calibration(v, u)) - LAW_UC)


def sample_bound(n: int) -> float:
    """Lemma 3.3 with the constants of its proof, which holds with probability 1 - SHARE."""
    return 16 / math.sqrt(n) + 4 * math.sqrt(math.log(1 / SHARE) / (2 * n))
