"""Impossible classes, zeros of few votes, and classes without a calibration point do no harm."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

from tests.calibrators.test_conventions import METHODS
from tests.refusals import refuses
from utility_calibration.calibrators import (
    Calibrator,
    IsotonicCalibration,
    TemperatureScaling,
    Uncalibrated,
)
from utility_calibration.calibrators.absent import absent_factors
from utility_calibration.calibrators.paddings import padding_gap
from utility_calibration.metrics import brier_score, negative_log_likelihood

PADDINGS = [-1e3, -65504.0, -1e9, np.finfo(np.float32).min, np.finfo(np.float64).min, -np.inf]


@pytest.fixture(params=METHODS)
def method(request):
    return clone(METHODS[request.param])


def questions(seed, n=400, classes=5):
    """Logits with temperature 2 of questions with 2 to 5 options, what is no option, and labels."""
    generator = np.random.default_rng(seed)
    pad = np.arange(classes) >= generator.integers(2, classes + 1, n)[:, None]
    logits = 3 * generator.normal(size=(n, classes))
    scores = np.where(pad, -np.inf, logits / 2) + generator.gumbel(size=logits.shape)
    order = generator.permutation(classes)
    labels = np.argsort(order)[scores.argmax(axis=1)]
    return logits[:, order], pad[:, order], labels


def near(method: Calibrator) -> float:
    """How far equal inputs may differ: an isotonic map can be steep between cells of its grid."""
    return 5e-5 if isinstance(method, IsotonicCalibration) else 1e-9


def test_any_padding_gives_the_same_fit(method):
    logits, pad, labels = questions(0)
    found = []
    for value in [*PADDINGS, "mixed"]:
        values = np.resize(PADDINGS, logits.shape) if value == "mixed" else value
        padded = np.where(pad, values, logits)
        p = method.fit(padded, labels).predict_proba(padded)
        assert p[pad].max() == 0 and np.isfinite(p).all()
        found.append(p)
    module = method.to_module(torch.float64)
    np.testing.assert_allclose(module(torch.from_numpy(padded)).numpy(), p, atol=near(method))
    for p in found:
        np.testing.assert_allclose(p, found[0], atol=near(method))
    if getattr(method, "normalize", True):
        plain = Uncalibrated().fit(padded, labels).predict_proba(padded)
        assert negative_log_likelihood(p, labels) < 1e-9 + negative_log_likelihood(plain, labels)


def test_a_label_that_is_impossible_is_named_where_the_logit_is_infinite():
    logits, pad, labels = questions(2)
    row = int(pad.any(axis=1).argmax())
    labels[row] = pad[row].argmax()
    with refuses("labels", row):
        TemperatureScaling().fit(np.where(pad, -np.inf, logits), labels)
    p = (
        TemperatureScaling()
        .fit(np.where(pad, -1e9, logits), labels)
        .predict_proba(np.where(pad, -1e9, logits))
    )
    assert 0 < p[pad].max() < 5e-3
    assert negative_log_likelihood(p, labels) < 0.05 + 1 / len(labels) * 10 + np.log(5)
    nothing = np.where(pad, -np.inf, logits)
    nothing[7] = -np.inf
    with refuses("logits", 7):
        TemperatureScaling().fit(nothing, labels)


@pytest.mark.parametrize("scale", [1e-4, 0.02, 1.0])
def test_a_far_logit_is_no_padding_where_no_calibration_point_has_one(scale):
    """Its class has calibration points, so its probability is small but not 0."""
    generator = np.random.default_rng(0)
    logits = scale * generator.normal(size=(400, 3))
    unclear = TemperatureScaling().fit(logits, generator.integers(3, size=400))
    far = np.array([[0, 0, -300 * scale], [0, 0, -1e9], [0, 0, -np.inf]])
    p = unclear.predict_proba(far)
    assert (p[:2, 2] > 0.1).all() and p[2, 2] == 0
    module = unclear.to_module(torch.float64)
    np.testing.assert_allclose(module(torch.from_numpy(far)).numpy(), p, atol=1e-9)
    padded = far.repeat(40, axis=0)  # with paddings among the calibration points they give 0
    labels = generator.integers(2, size=len(padded))
    both = np.concatenate([logits, padded]), np.concatenate([np.arange(400) % 3, labels])
    assert TemperatureScaling().fit(*both).predict_proba(far)[:, 2].max() == 0


@pytest.mark.parametrize("votes", [1, 5, 100])
def test_zeros_of_few_votes_do_no_harm(method, votes):
    generator = np.random.default_rng(votes)
    truth = generator.dirichlet(np.full(4, 0.4), size=2000)
    p = np.array([generator.multinomial(votes, row) for row in truth]) / votes
    labels = np.array([generator.choice(4, p=row) for row in truth])
    method.set_params(inputs="probabilities").fit(p[:1000], labels[:1000])
    calibrated, plain = method.predict_proba(p[1000:]), p[1000:]
    if getattr(method, "normalize", True):
        for score in (brier_score, negative_log_likelihood):
            assert score(calibrated, labels[1000:]) <= 1.06 * score(plain, labels[1000:])


@pytest.mark.parametrize("absent", [[3], [0, 1, 4]])
def test_a_class_without_a_point_keeps_a_share_of_its_probability(
    method, absent, made_up, tmp_path
):
    logits, labels = made_up(n=900)
    kept = ~np.isin(labels, absent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method.fit(logits[kept], labels[kept])
    if isinstance(method, Uncalibrated):
        return
    shown = ", ".join(map(str, absent))
    assert any(f"class {shown} of 5" in str(warning.message) for warning in caught)
    p = method.predict_proba(logits)
    beta = method.conditioning_[2]
    expected = Uncalibrated().fit(logits, labels).predict_proba(beta * logits)
    counts = np.bincount(labels[kept], minlength=5), expected[kept].sum(axis=0)
    expected[:, absent] *= absent_factors(*counts)[absent]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p[:, absent], expected[:, absent], atol=1e-9)
    assert p[kept][:, absent].sum(axis=0).max() < 3
    module = method.to_module(torch.float64)
    np.testing.assert_allclose(module(torch.from_numpy(logits)).numpy(), p, atol=near(method))
    loaded = Calibrator.load(method.save(tmp_path / "method.npz"))
    np.testing.assert_array_equal(loaded.predict_proba(logits), p)


def test_a_padding_begins_in_the_middle_of_the_first_wide_hole():
    logits = np.array([[0.0, -1.0, -(2.0**20)], [0.0, -1.5, -(2.0**21)]])
    # Distances are told apart by quarters of an octave: the hole is from 2^0.75 to 2^20.
    assert padding_gap(logits, 1.0) == (pytest.approx(2 ** ((0.75 + 20) / 2)), True)
    assert padding_gap(logits[:, :2], 1.0) == (pytest.approx(50 * 1.5), False)
    assert padding_gap(np.zeros((2, 3)), 1.0) == (math.inf, False)
