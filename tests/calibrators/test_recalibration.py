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


def test_the_gain_of_weighted_points_is_that_of_the_points_that_they_stand_for(drawn):
    """The forecast is right for the first half and too sure in the second; weights choose one."""
    logits, labels = drawn
    is_second = np.arange(len(labels)) % 2 == 1
    said = softmax(np.where(is_second[:, None], 2 * logits, logits), axis=1)
    alone = recalibration_gain(said[is_second], labels[is_second])
    for unit in (1.0, 0.3, 1e-90, 1e20):
        found = recalibration_gain(said, labels, sample_weight=unit * is_second)
        assert found == pytest.approx(alone, abs=1e-9)
    weights = np.where(is_second, 1.0, 0.01) * 0.7
    nearly = recalibration_gain(said, labels, sample_weight=weights)
    assert nearly.gain == pytest.approx(alone.gain, abs=0.02)
    mean = recalibration_gain(said, labels)
    assert nearly.gain - mean.gain > mean.half_width


def test_bad_input_is_named():
    p = np.full((9, 2), 0.5)
    with refuses("labels", number="10"):
        recalibration_gain(p, np.arange(9) % 2)
    with refuses("loss"):
        recalibration_gain(p, np.arange(9) % 2, loss="auc")
