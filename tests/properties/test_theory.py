"""The paper's theorems by simulation, on a classifier whose true calibration is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import softmax

from metrics import dkw_band, ecdf, reference, utility_calibration
from pipeline.sources.synthetic import SyntheticClassifier
from tests.true_calibration import true_utility_calibration

CLASSIFIER = SyntheticClassifier(classes=5, temperature=0.7)
SIZES = (250, 1000, 4000, 16_000)
REPETITIONS = 30


def lemma_bound(n: int, delta: float) -> float:
    """Lemma 3.3 with the constants of its proof: 16/√n + 4 √(ln(1/δ) / 2n)."""
    return 16 / math.sqrt(n) + 4 * math.sqrt(math.log(1 / delta) / (2 * n))


@pytest.fixture(scope="module")
def errors():
    """|estimate - truth| of the top class's UC: [sizes, repetitions]."""
    truth = true_utility_calibration(CLASSIFIER, reference.top_class, count=200_000)

    def error(n: int, seed: int) -> float:
        sample = CLASSIFIER.sample(n, seed)
        p = softmax(sample.logits.astype(np.float64), axis=1)
        v, u = reference.predicted_and_realized(reference.top_class(p), p, sample.labels)
        return abs(float(utility_calibration(v, u)) - truth)

    return np.array([[error(n, 100 + seed) for seed in range(REPETITIONS)] for n in SIZES])


def test_the_estimators_error_falls_as_one_over_root_n(errors):
    slope = np.polyfit(np.log(SIZES), np.log(errors.mean(axis=1)), 1)[0]
    assert -0.62 < slope < -0.38


def test_the_estimators_error_stays_under_the_lemmas_bound(errors):
    for n, row in zip(SIZES, errors):
        assert row.max() <= lemma_bound(n, delta=0.05)


def test_the_ecdf_is_as_near_in_l2_as_the_theorem_says():
    """‖F_E - F̂‖ <= √(2 ε_stat) + √(ln(2/δ) / M), app. C.5; and DKW's band for given points."""
    random = np.random.default_rng(0)
    payoffs = reference.sample_payoffs(300, CLASSIFIER.classes, random)
    many = CLASSIFIER.sample(20_000, seed=1)
    p = softmax(many.logits.astype(np.float64), axis=1)
    true = utility_calibration(payoffs @ p.T, payoffs @ many.true_probabilities.T)
    grid = np.linspace(0, 2, 4001)
    of_true = np.searchsorted(np.sort(true), grid, side="right") / len(true)
    for seed in range(10):
        few = CLASSIFIER.sample(1000, seed=100 + seed)
        p = softmax(few.logits.astype(np.float64), axis=1)
        estimated = utility_calibration(payoffs @ p.T, payoffs[:, few.labels])
        accuracy = float(np.abs(estimated - true).max())
        drawn = random.choice(len(payoffs), size=100)
        values, levels = ecdf(estimated[drawn])
        of_drawn = np.concatenate([[0], levels])[np.searchsorted(values, grid, side="right")]
        distance = math.sqrt(float(np.trapezoid((of_true - of_drawn) ** 2, grid)))
        assert distance <= math.sqrt(2 * accuracy) + math.sqrt(math.log(2 / 0.05) / 100)
        whole = np.searchsorted(np.sort(estimated), grid, side="right") / len(estimated)
        assert np.abs(whole - of_drawn).max() <= dkw_band(100, confidence=0.999)
