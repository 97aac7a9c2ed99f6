"""Gains by another threshold, against all pairs of thresholds, and the truthful error."""

import math

import numpy as np
import pytest

from utility_calibration.metrics import (
    ClassWise,
    TopK,
    acting_gain,
    reference,
    reference_additions,
    two_bin_error,
)
from utility_calibration.metrics.acting import largest_gain


def problem(n, classes, seed, tied=False):
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(classes, 0.7), n)
    if tied:
        p = (1 + random.multinomial(16, p)) / (16 + classes)
    return p, random.integers(0, classes, n)


@pytest.mark.parametrize(("n", "classes", "seed"), [(1, 2, 0), (30, 3, 1), (45, 4, 2), (60, 2, 3)])
def test_the_gain_is_that_of_all_pairs_of_thresholds(n, classes, seed):
    for utilities, vector_of, tied in (
        (ClassWise(), reference.class_wise, True),
        (TopK(), lambda p, k: reference.top_k(p, k + 1), False),
    ):
        p, labels = problem(n, classes, seed, tied)
        vectors = [vector_of(p, number) for number in range(classes)]
        pairs = [reference.predicted_and_realized(vector, p, labels) for vector in vectors]
        expected = [reference_additions.acting_gain(v, u) for v, u in pairs]
        found = acting_gain(utilities, p, labels, repetitions=0)
        assert found.gain == pytest.approx(max(expected), abs=1e-9)
        assert math.isnan(found.floor)
        v, u = pairs[found.utility]
        told = (v > found.threshold + 1e-9, v >= found.threshold - 1e-9)
        better = v >= found.act_from
        payoffs = [((u - found.threshold) * acts).mean() for acts in (*told, better)]
        assert payoffs[2] - min(payoffs[:2]) == pytest.approx(found.gain, abs=1e-9)
        errors = reference.calibration_errors(vectors, p, labels)
        assert found.gain <= errors.max() + 1e-12


def test_a_known_distortion_is_found_and_chance_is_not():
    """The event has probability 1/2 wherever .3 is said: with a cost of .3 … .5 one should act."""
    random = np.random.default_rng(0)
    truth = random.choice([0.1, 0.5, 0.9], 6000)
    said = np.where(truth == 0.5, 0.3, truth)
    labels = (random.random(6000) < truth).astype(int)
    forecast = np.column_stack([1 - said, said])
    found = acting_gain(ClassWise(), forecast, labels)
    assert found.gain == pytest.approx(0.2 / 3, abs=0.01)
    assert found.gain > 5 * found.floor
    calibrated = np.column_stack([1 - truth, truth])
    assert acting_gain(ClassWise(), calibrated, labels).gain < 0.02


def test_a_weight_of_three_counts_as_three_points():
    random = np.random.default_rng(4)
    v, u, w = random.integers(1, 9, 40) / 10, random.normal(size=40), random.integers(0, 4, 40)
    found = largest_gain(v, u, w)
    expected = reference_additions.acting_gain(np.repeat(v, w), np.repeat(u, w))
    assert found["gain"] == pytest.approx(expected, abs=1e-12) and expected > 0


def test_the_two_bin_error_is_its_definition():
    p, labels = problem(40, 3, 5)
    assert two_bin_error(p, labels) == pytest.approx(
        reference_additions.two_bin_error(p, labels), abs=1e-12
    )


def test_the_truth_minimises_the_expected_two_bin_error_at_every_n():
    """Exactly, over all labels of a few points; minus Σ v (1 - v) the truth would not."""
    truth = np.array([0.9, 0.8, 0.3])

    def expected(said):
        total = 0.0
        for number in range(8):
            y = (number >> np.arange(3)) & 1
            chance = np.where(y == 1, truth, 1 - truth).prod()
            total += chance * two_bin_error(np.column_stack([1 - said, said]), y)
        return total

    best = expected(truth)
    assert best == pytest.approx(2 * (truth * (1 - truth)).sum() / 9)
    random = np.random.default_rng(0)
    others = [expected(np.clip(truth + random.normal(0, s, 3), 0, 1)) for s in (0.02, 0.1, 0.5)]
    assert min(others) > best
    nearer = truth + 0.1 * (0.5 - truth)
    gained = 2 * ((nearer * (1 - nearer)).sum() - (truth * (1 - truth)).sum()) / 9
    assert expected(nearer) - best < gained
