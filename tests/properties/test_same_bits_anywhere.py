"""A fit has the same bits wherever its arrays lie in memory."""

import numpy as np
import pytest

from utility_calibration.calibrators import StructuredMatrixScaling
from utility_calibration.metrics.kernels.softmax import softmax_rows, sum_in_lanes


@pytest.mark.slow
def test_fits_have_the_same_bits_whatever_lies_beside_them_in_memory():
    """Before the sums were written in lanes, some 20 of these fits had another last bit."""
    rng = np.random.default_rng(1)
    logits = 3 * rng.normal(size=(80, 5)).astype(np.float32)
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    others: list[bytearray] = []
    answers = set()
    for _ in range(1500):
        others.append(bytearray(int(rng.integers(1, 200_000))))
        if len(others) > 200:
            del others[int(rng.integers(0, 100)) : int(rng.integers(100, 200))]
        fitted = StructuredMatrixScaling().fit(logits, labels)
        answers.add(fitted.predict_proba(logits).tobytes())
    assert len(answers) == 1


def test_a_softmax_has_the_same_bits_at_any_distance_from_its_logits():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 13))
    answers = set()
    for gap in range(64):
        memory = np.zeros(2 * logits.size + gap)
        source = memory[: logits.size].reshape(logits.shape)
        target = memory[logits.size + gap :].reshape(logits.shape)
        source[:] = logits
        softmax_rows(source, 1.0, target)
        answers.add(target.tobytes())
    assert len(answers) == 1


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 1001])
def test_a_sum_in_lanes_is_the_sum(size):
    values = np.random.default_rng(size).random(size)
    assert sum_in_lanes(values) == pytest.approx(values.sum(), rel=1e-14)
