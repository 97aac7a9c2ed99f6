"""Probabilities in the place of logits: their logarithm, and a warning where it was forgotten."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from calibrators import TemperatureScaling, Uncalibrated, from_probabilities
from metrics import InputError, negative_log_likelihood
from metrics.scores import LIKELIHOOD_FLOOR

P = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
Y = np.array([0, 1, 1])


def test_their_softmax_is_the_rows():
    back = Uncalibrated().fit(from_probabilities(P), Y).predict_proba(from_probabilities(P))
    np.testing.assert_allclose(back, P, atol=3 * LIKELIHOOD_FLOOR, rtol=1e-15)
    assert negative_log_likelihood(back, Y) == pytest.approx(negative_log_likelihood(P, Y))


def test_the_kind_stays():
    assert from_probabilities(P).dtype == np.float64
    tensor = from_probabilities(torch.tensor(P, dtype=torch.float32))
    assert isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_two_classes_by_the_second_one(shape):
    p = np.array([0.25, 1.0, 0.0]).reshape(shape)
    np.testing.assert_allclose(np.exp(from_probabilities(p))[:, 1], p.ravel(), atol=2e-12)


@pytest.mark.parametrize("bad", [np.log(P + 1e-9), P / 2, "text", np.zeros((2, 2, 2))])
def test_what_are_no_probabilities(bad):
    with pytest.raises(InputError, match="probabilities: "):
        from_probabilities(bad)


def test_rounding_is_renormalised_with_a_warning():
    with pytest.warns(UserWarning, match="renormalised"):
        logits = from_probabilities(np.array([[1.00005, -0.00005]]))
    np.testing.assert_allclose(logits, [[0, np.log(LIKELIHOOD_FLOOR)]], atol=1e-12)


def test_probabilities_given_for_logits_get_a_warning():
    for values in (P, P.astype(np.float32), torch.tensor(P)):
        with pytest.warns(UserWarning, match=r"look like probabilities.*from_probabilities"):
            TemperatureScaling().fit(values, Y)


def test_labels_of_one_class_get_a_warning(made_up):
    logits, _ = made_up(n=30)
    with pytest.warns(UserWarning, match="labels: all 30 are 2, which a calibrator learns to say"):
        Uncalibrated().fit(logits, np.full(30, 2))


def test_logits_get_none(made_up):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperatureScaling().fit(*made_up())
