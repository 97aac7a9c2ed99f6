"""The population value of UC of a synthetic classifier, of which the truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from metrics import utility_calibration
from pipeline.sources.synthetic import SyntheticClassifier


def true_utility_calibration(
    classifier: SyntheticClassifier,
    payoffs: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    count: int = 200_000,
    seed: int = 1,
) -> float:
    """The population value of UC (eq. 3.2) of one utility, by a large sample without label noise.

    The realized utility of a point is replaced by its expectation under the true distribution, so
    that only the spread of points is left to sample: the error falls like 1/√count.

    Args:
        payoffs: reported probabilities [b, C] → u(p, e_j) [b, C], the utility if class j is true.
        count: points to draw; BLOCK × C numbers are in memory at a time.
        seed: of the sample; choose another than that of the data under test.
    """
    predicted, expected = [], []
    for block in classifier.blocks(count, seed):
        probabilities = softmax(block.logits.astype(np.float64), axis=1)
        utility = payoffs(probabilities)
        predicted.append((probabilities * utility).sum(axis=1))
        expected.append((block.true_probabilities * utility).sum(axis=1))
    return float(utility_calibration(np.concatenate(predicted), np.concatenate(expected)))
