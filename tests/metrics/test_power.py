"""How many positives it takes before "within noise" speaks for a class."""

import math

import numpy as np
import pytest

from metrics import ClassWise, noise_floor
from metrics.resampling import RELATIVE_ERROR, fewest_positives


def test_the_rule_of_a_rare_class_of_two():
    """Its floor is 2.24 √k positives, the 95 % quantile of a Brownian motion's range."""
    assert fewest_positives(20_000, 2.24 * math.sqrt(16) / 20_000) > 16
    assert fewest_positives(20_000, 2.24 * math.sqrt(40) / 20_000) <= 40
    assert fewest_positives(20_000, 0.01) > fewest_positives(20_000, 0.005) > 100 / RELATIVE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(("positives", "is_enough"), [(12, False), (60, True)])
def test_with_enough_positives_an_error_of_half_the_frequency_is_found(positives, is_enough):
    """One class claims 1.5 times what occurs; `positives` are those in expectation."""
    n, found, enough = 4000, 0, 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        true = np.minimum(positives / n * random.gamma(2, 0.5, size=n), 0.5)
        labels = (random.random(n) < true).astype(int)
        claimed = np.stack([1 - 1.5 * true, 1.5 * true], axis=1)
        floor = noise_floor(ClassWise(), claimed, labels, repetitions=100, seed=seed)
        found += floor.p_value < 0.05
        enough += labels.sum() >= fewest_positives(n, floor.q95)
    assert (found >= 70) == (enough >= 50) == is_enough
