"""What the tests of patching share: forecasts with something to patch, and what a fit stores."""

import numpy as np
from scipy.special import softmax as scipy_softmax

from tests.forecasts import labels_from
from utility_calibration.calibrators.patching.audit import StandardFamilies, find_worst
from utility_calibration.calibrators.patching.state import PatchedForecast

FITTED = ("kinds_", "indices_", "vectors_", "lows_", "highs_", "shifts_", "errors_", "losses_")


def over_confident(n, classes, seed, sharpness=2.0):
    """Logits twice as sharp as the truth and off by a little for each class, with labels."""
    random = np.random.default_rng(seed)
    z = random.normal(scale=1.5, size=(n, classes))
    truth = np.exp(z)
    truth /= truth.sum(axis=1, keepdims=True)
    labels = labels_from(truth, random)
    return (sharpness * z + 0.3 * np.arange(classes)).astype(np.float32), labels


def softmax(logits):
    return scipy_softmax(np.asarray(logits, dtype=np.float64), axis=1)


def tied_u_comb(p, y):
    """As an audit has it: near-equal predictions tied."""
    state = PatchedForecast(p, y)
    return find_worst(StandardFamilies(0, seed=0)(state, 0))[2]
