"""Of 20 calibrated groups some one bears a mark in 5 % of cases, and a bad one is found."""

import numpy as np
import pytest
from scipy.stats import binom

from tests.forecasts import labels_from
from utility_calibration.metrics import ClassWise, TopK
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.resampling import floor_draws
from utility_calibration.metrics.samples import sample_of
from utility_calibration.pipeline.scoring.families import step_down
from utility_calibration.pipeline.scoring.inference import SIZE

SIZES = [40] * 10 + [100] * 6 + [300] * 3 + [1500]  # points of a group
BAD, TOO_SURE = 17, 0.6  # the group of 300 that forecasts softmax(z / .6)
CLASSES, DRAWS = 4, 100
UTILITIES = {"u_cwe": ClassWise(), "u_topk": TopK()}


def measure(_, forecast, outcomes):
    return {key: each.errors(forecast, outcomes).max(axis=1) for key, each in UTILITIES.items()}


def p_values(seed, temperature):
    """By metric the p-values [20] of the groups together; `temperature` is the bad group's."""
    random = np.random.default_rng([seed, len(SIZES)])
    errors, floors = [], []
    for group, size in enumerate(SIZES):
        logits = 2 * random.normal(size=(size, CLASSES))
        p = softmax(logits / (temperature if group == BAD else 1))
        sample = sample_of(p, labels_from(softmax(logits), random))
        errors.append(measure(0, sample.forecast, sample.outcomes))
        floors.append(floor_draws([sample], measure, DRAWS, seed * len(SIZES) + group))
    return {
        key: step_down(
            [float(one[key].max()) for one in errors], [np.ravel(one[key]) for one in floors]
        )
        for key in UTILITIES
    }


def test_a_group_that_is_too_sure_is_found_among_twenty():
    found = [p_values(seed, TOO_SURE)["u_topk"] <= SIZE for seed in range(10)]
    assert np.mean(found, axis=0)[BAD] >= 0.8
    assert np.mean(found) < 2 / len(SIZES)  # not by marking all


@pytest.mark.slow
def test_some_calibrated_group_is_marked_in_five_percent_of_cases():
    trials = 600
    found = [p_values(seed, 1.0) for seed in range(trials)]
    for key in UTILITIES:
        marked = sum(one[key].min() <= SIZE for one in found)
        assert binom.sf(marked - 1, trials, SIZE) > 0.01, (key, marked)
