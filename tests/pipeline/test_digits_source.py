"""The embedded benchmark: real, out of sample, over-confident, the same every time."""

import numpy as np
from sklearn.datasets import load_digits

from pipeline.sources.digits import digits_logits


def test_out_of_sample_over_confident_and_deterministic():
    calls = []
    first = digits_logits(progress=lambda *state: calls.append(state))
    second = digits_logits()
    np.testing.assert_array_equal(first.logits, second.logits)
    assert first.logits.shape == (1198, 10)
    assert first.logits.dtype == np.float32
    assert calls[0][0] == 0
    assert calls[-1][0] == calls[-1][1]
    odds = np.exp(first.logits - first.logits.max(axis=1, keepdims=True))
    confidence = (odds.max(axis=1) / odds.sum(axis=1)).mean()
    accuracy = (first.logits.argmax(axis=1) == first.labels).mean()
    assert 0.93 < accuracy < 0.98
    assert confidence > accuracy + 0.01


def test_every_digit_left_out_of_training_is_there_once():
    everything = np.bincount(load_digits().target)
    order = np.random.default_rng(0).permutation(1797)
    trained = np.bincount(load_digits().target[order[:599]])
    np.testing.assert_array_equal(
        np.bincount(digits_logits(iterations=1).labels), everything - trained
    )
