"""The utility-risk gap against the definition of Proposition 3.1, point by point."""

import numpy as np
import pandas as pd
import pytest

from utility_calibration.metrics import TopK
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.pipeline.harness.units import composed, resolved
from utility_calibration.pipeline.scoring.risk_gap import (
    ALL_METHODS,
    NOISE,
    Measured,
    correlations,
    measured,
    over_splits,
    risk_users,
    split_frame,
    utility_frame,
)

CLASSES = 4


def options(*overrides: str):
    return resolved(composed(["benchmark=digits", "calibrator=vector", *overrides])).users


def forecast_of(n: int, seed: int) -> tuple[Forecast, np.ndarray]:
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(CLASSES, 0.7), n).round(2)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)  # rounding makes ties of v
    return Forecast(p), random.integers(CLASSES, size=n)


def risk(acts: np.ndarray, u: np.ndarray, t: float) -> float:
    """R_util of the paper: |u - t| wherever the action is not the one that u asks for."""
    return float((np.abs(u - t) * (acts != (u >= t))).mean())


def slow_gap(v: np.ndarray, u: np.ndarray) -> float:
    """The gap by trying every threshold t and every upper set of v, which is what h can act on.

    The user acts on v >= t, or for thresholds just above a prediction t on v > t.
    """
    upper_sets = [v >= s for s in np.unique(v)] + [np.zeros(len(v), bool)]
    gaps = [0.0]
    for t in np.unique(v):
        least = min(risk(acts, u, t) for acts in upper_sets)
        gaps += [risk(v >= t, u, t) - least, risk(v > t, u, t) - least]
    return max(gaps)


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_that_of_the_definition_and_at_most_uc(seed):
    forecast, labels = forecast_of(40, seed)
    outcomes = forecast.outcomes(labels)
    users = risk_users(CLASSES, options("users.sampled=4", "users.shortlists=2"))
    found = measured(users, forecast, outcomes)
    slow = [
        slow_gap(*utilities.predicted_and_realized(forecast, outcomes, index))
        for utilities in users.values()
        for index in range(utilities.count(CLASSES))
    ]
    assert found.gap[0] == pytest.approx(slow, abs=1e-12)
    assert (found.gap <= found.uc + 1e-12).all()
    assert found.gap.max() > 0.02


def test_thresholds_between_predictions_save_nothing_more():
    """The supremum over all t in [-1, 1] is reached at a prediction or just above one."""
    forecast, labels = forecast_of(30, 5)
    outcomes = forecast.outcomes(labels)
    v, u = TopK((1,)).predicted_and_realized(forecast, outcomes, 0)
    sets = [v >= s for s in np.unique(v)] + [np.zeros(len(v), bool)]
    grid = [
        risk(v >= t, u, t) - min(risk(acts, u, t) for acts in sets) for t in np.linspace(-1, 1, 401)
    ]
    assert max(grid) <= slow_gap(v, u) + 1e-12


def test_the_users_of_two_classes_and_of_few_shortlists():
    users = risk_users(2, options("users.shortlists=10"))
    assert users["shortlists"].count(2) == 1


def test_the_tables_have_means_over_splits_and_correlations_over_users():
    one = Measured(np.array([0.1, 0.2, 0.4]), np.array([0.1, 0.1, 0.3]))
    other = Measured(np.array([0.3, 0.2, 0.2]), np.array([0.1, 0.1, 0.1]))
    noise = [Measured(one.uc[None], one.gap[None]), Measured(other.uc[None], other.gap[None])]
    by_calibrator = {"vector": [one, other], "isotonic": [one, one]}
    splits = split_frame(by_calibrator, noise)
    of_vector = splits[splits["calibrator"] == "vector"]
    assert of_vector["worst_uc"].tolist() == [0.4, 0.3]
    assert of_vector["largest_ratio"].tolist() == pytest.approx([1.0, 0.5])
    assert of_vector["spearman"].isna().tolist() == [False, True]  # all gaps are equal
    assert of_vector["pearson"].iloc[0] == pytest.approx(np.corrcoef(one.uc, one.gap)[0, 1])
    together = splits[splits["calibrator"] == ALL_METHODS]
    both = [np.concatenate(parts) for parts in zip(other, one, strict=True)]
    assert together["pearson"].iloc[1] == pytest.approx(np.corrcoef(*both)[0, 1])
    assert (splits["calibrator"] == NOISE).sum() == 2
    means = utility_frame(by_calibrator, noise, {"shortlists": TopK((1, 2, 3))}, CLASSES)
    of_vector = means[means["calibrator"] == "vector"]
    assert of_vector["uc"].tolist() == pytest.approx([0.2, 0.2, 0.3])
    assert of_vector["utility"].tolist() == [0, 1, 2]


def test_intervals_over_splits_are_those_of_shared_points():
    frame = pd.DataFrame(
        {"calibrator": "vector", "split": [0, 1, 2], "worst_uc": [1.0, 2.0, 3.0]}
        | dict.fromkeys(("largest_gap", "largest_ratio", "spearman", "pearson"), 0.5)
    )
    row = over_splits(frame, 0.3).iloc[0]
    assert row["worst_uc"] == 2
    assert row["worst_uc_half_width"] == pytest.approx(4.302653 * (1 / 3 + 3 / 7) ** 0.5)
    assert row["pearson_half_width"] == 0


def test_one_user_or_equal_errors_have_no_correlation():
    assert np.isnan(correlations(np.ones(3), np.arange(3.0))["spearman"])
    assert np.isnan(correlations(np.ones(1), np.ones(1))["pearson"])
