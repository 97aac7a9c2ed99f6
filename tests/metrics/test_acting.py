"""Gains by another threshold, against all pairs of thresholds, and the truthful error."""

import math

import numpy as np
import pytest

from utility_calibration import metrics as m
from utility_calibration.metrics import reference, reference_additions
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
        (m.ClassWise(), reference.class_wise, True),
        (m.TopK(), lambda p, k: reference.top_k(p, k + 1), False),
    ):
        p, labels = problem(n, classes, seed, tied)
        vectors = [vector_of(p, number) for number in range(classes)]
        pairs = [reference.predicted_and_realized(vector, p, labels) for vector in vectors]
        expected = [reference_additions.acting_gain(v, u) for v, u in pairs]
        found = utilities.evaluate(p, labels, repetitions=1).gain
        assert found.gain == pytest.approx(max(expected), abs=1e-9)
        v, u = pairs[found.utility]
        told = (v > found.threshold + 1e-9, v >= found.threshold - 1e-9)
        better = v >= found.act_from - 1e-9
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
    found = m.ClassWise().evaluate(forecast, labels).gain
    assert found.gain == pytest.approx(0.2 / 3, abs=0.01)
    assert found.gain > 5 * found.floor
    calibrated = np.column_stack([1 - truth, truth])
    assert m.ClassWise().evaluate(calibrated, labels).gain.gain < 0.02


def test_nobody_acts_from_between_predictions_that_only_rounding_tells_apart():
    said, hits = np.repeat([1.0, 1 + 2.0**-52], [50, 2]), np.repeat([0.0, 1.0], [50, 2])
    found = largest_gain(said, hits)
    assert found["act_from"] == math.inf
    assert found["gain"] == pytest.approx(50 / 52)


def test_the_two_bin_error_is_its_definition():
    p, labels = problem(40, 3, 5)
    assert m.two_bin_error(p, labels) == pytest.approx(
        reference_additions.two_bin_error(p, labels), abs=1e-12
    )
