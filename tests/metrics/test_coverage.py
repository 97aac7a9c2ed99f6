"""A certificate covers the true UC as often as it says, also for classifiers that hardly err."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from utility_calibration import metrics as m
from utility_calibration.metrics.scores import checked
from utility_calibration.metrics.utilities.base import UtilityClass

PROMISED = 0.93
"""Of the stated 95 %: what a bound must reach in every cell."""
KINDS = ("TopK", "ClassWise", "Decision", "GainMatrix")
ACCURACIES = (0.94, 0.99, 0.999, 0.9997)
SIZES = ((2, 300, 200), (10, 15_000, 30), (100, 500, 60))
"""Classes, points, and samples of each accuracy."""


@dataclass(frozen=True)
class SharpClassifier:
    """A classifier that claims `accuracy` and errs `ratio` times as often as it claims.

    The claimed error of a point is gamma distributed around 1 - `accuracy`, and so is what is left
    for the wrong classes among each other, in which the classifier is right.
    """

    classes: int
    accuracy: float
    ratio: float = 1.0

    def points(self, n, seed):
        """Claimed and true probabilities, [n, C] each."""
        random = np.random.default_rng(seed)
        error = np.minimum(random.gamma(2, (1 - self.accuracy) / 2, size=(n, 1)), 0.3)
        wrong = random.gamma(0.5, size=(n, self.classes)) + 1e-9
        top = random.integers(self.classes, size=(n, 1))
        np.put_along_axis(wrong, top, 0, axis=1)
        wrong /= wrong.sum(axis=1, keepdims=True)
        both = error * wrong, self.ratio * error * wrong
        for p in both:
            np.put_along_axis(p, top, 1 - p.sum(axis=1, keepdims=True), axis=1)
        return both

    def sample(self, n, seed):
        """Claimed probabilities and labels."""
        claimed, true = self.points(n, seed)
        uniforms = np.random.default_rng([seed, 1]).random((n, 1))
        labels = (true.cumsum(axis=1) <= uniforms).sum(axis=1)
        return claimed, np.minimum(labels, self.classes - 1)

    def truth(self, utilities: UtilityClass) -> float:
        """The largest true UC: outcomes of many points are replaced by their expectation.

        Of 20,000 points it would be off by a tenth of the width of a bound at 15,000.
        """
        if self.ratio == 1:
            return 0.0
        claimed, true = self.points(2_000_000 // self.classes, seed=10_000)
        forecast, _ = checked(claimed, np.zeros(len(claimed), int))
        errors = []
        for index in range(utilities.count(self.classes)):
            vectors = utilities.outcome_utilities(forecast, index)
            v, u = (claimed * vectors).sum(axis=1), (true * vectors).sum(axis=1)
            errors.append(float(m.utility_calibration(v, u)))
        return max(errors)


def users(kind: str, classes: int) -> UtilityClass:
    losses = 1 - np.eye(classes, classes + 1)
    losses[:, 1] *= 0.5
    losses[:, -1] = 0.02
    return {
        "TopK": m.TopK(),
        "ClassWise": m.ClassWise(),
        "Decision": m.Decision(losses),
        "GainMatrix": m.GainMatrix.sample_aligned(4, classes, seed=0),
    }[kind]


def hold(hits: Counter[str], trials: int, chance: float) -> bool:
    """Whether no bound holds so rarely that 93 % has less than this `chance`."""
    return all(binom.cdf(held, trials, PROMISED) >= chance for held in hits.values())


def check(kind, accuracy, ratio, classes, n, trials) -> Counter[str]:
    """Count the samples in which each bound holds: in none significantly less than `PROMISED`."""
    classifier, utilities = SharpClassifier(classes, accuracy, ratio), users(kind, classes)
    truth, hits = classifier.truth(utilities), Counter[str]()
    for seed in range(trials):
        b = utilities.evaluate(*classifier.sample(n, seed), seed=seed).interval
        assert b.lower <= b.estimate <= b.upper
        hits.update(lower=b.lower <= truth, upper=truth <= b.upper, finite=truth <= b.upper_finite)
    assert hold(hits, trials, 1e-3), hits
    return hits


@pytest.mark.parametrize(("n", "most"), [(300, 8), (3000, 24)])
def test_the_upper_bound_of_a_rare_event_holds_in_95_percent(n, most):
    """Claimed .001, true .003: the exact coverage, by the number of misses among n points.

    A plain normal bound holds in 59 % and 89 %.
    """
    p = np.tile([0.999, 0.001], (n, 1))
    coverage = 0.0
    for misses in range(most):
        found = m.TopK(ks=(1,)).evaluate(p, np.arange(n) < misses).interval
        coverage += float(binom.pmf(misses, n, 0.003)) * (found.upper >= 0.002)
    assert coverage + binom.sf(most - 1, n, 0.003) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", [1, 3])
@pytest.mark.parametrize(("classes", "n", "trials"), SIZES)
def test_the_bounds_hold_at_every_accuracy(kind, ratio, classes, n, trials):
    """Each accuracy by itself, and all together, where fewer misses show."""
    hits = [check(kind, accuracy, ratio, classes, n, trials) for accuracy in ACCURACIES]
    assert hold(sum(hits, Counter[str]()), trials * len(ACCURACIES), 0.01)
