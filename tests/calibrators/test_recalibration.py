"""What recalibration could still gain, where it is known."""

import numpy as np
import pytest
from scipy.special import softmax

from tests.refusals import refuses
from utility_calibration.calibrators.recalibration import recalibration_gain


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(4)
    logits = 2 * random.normal(size=(1500, 3))
    return logits, (logits + random.gumbel(size=logits.shape)).argmax(axis=1)


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_it_is_the_loss_beyond_that_of_the_truth(drawn, loss):
    """Twice the logits: the gain is the mean divergence from the truth. The truth gains nothing."""
    logits, labels = drawn
    truth, said = softmax(logits, axis=1), softmax(2 * logits, axis=1)
    divergence = {
        "nll": (truth * np.log(truth / said)).sum(axis=1).mean(),
        "brier": np.square(truth - said).sum(axis=1).mean(),
    }
    found = recalibration_gain(said, labels, loss=loss)
    assert found.gain == pytest.approx(divergence[loss], abs=1.5 * found.half_width)
    assert found.gain > found.half_width
    nothing = recalibration_gain(truth, labels, loss=loss)
    assert nothing.gain < nothing.half_width


def test_bad_input_is_named():
    p = np.full((9, 2), 0.5)
    with refuses("labels", number="10"):
        recalibration_gain(p, np.arange(9) % 2)
    with refuses("loss"):
        recalibration_gain(p, np.arange(9) % 2, loss="auc")
