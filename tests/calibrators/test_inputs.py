"""Probabilities in the place of logits: their logarithm, and a warning where it was forgotten.

The warning must come for probabilities, percentages and votes, and never for logits.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from calibrators import TemperatureScaling, Uncalibrated, from_probabilities
from calibrators.inputs import lookalike
from metrics import InputError, negative_log_likelihood
from metrics.scores import LIKELIHOOD_FLOOR

FILES = (
    *("cifar10_resnet44", "cifar10_resnet56", "cifar10_repvgg_a0", "cifar10_repvgg_a2"),
    *("cifar100_resnet56", "cifar100_repvgg_a2"),
)
P = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
Y = np.array([0, 1, 1])


def test_their_softmax_is_the_rows():
    back = Uncalibrated().fit(from_probabilities(P), Y).predict_proba(from_probabilities(P))
    np.testing.assert_allclose(back, P, atol=3 * LIKELIHOOD_FLOOR, rtol=1e-15)
    assert negative_log_likelihood(back, Y) == pytest.approx(negative_log_likelihood(P, Y))


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
    with pytest.warns(UserWarning, match="labels: all 30 are 2, so the calibrator will predict"):
        Uncalibrated().fit(logits, np.full(30, 2))


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def stretched(values, largest):
    """Whole numbers from 0 to `largest`, as quantising leaves them."""
    return np.round((values - values.min()) / np.ptp(values) * largest)


@pytest.mark.parametrize("file", FILES)
def test_logits_of_real_networks_are_logits_however_they_are_shifted(shared_dir, file):
    with np.load(shared_dir / "logits" / f"{file}.npz") as arrays:
        logits = arrays["logits"].astype(np.float64)
    centred = logits - logits.mean(axis=1, keepdims=True)
    made = {
        "as they are": logits,
        "the smallest 0": logits - logits.min(),
        "the smallest of each row 0": logits - logits.min(axis=1, keepdims=True),
        "one sum": centred - centred.min(),
        "bytes": stretched(logits, 255),
        "bytes of one sum": stretched(centred, 255),
        "16 bits": stretched(logits, 65535),
        "whole": np.round(logits - logits.min()),
        "half": logits.astype(np.float16),
        "none negative": np.maximum(logits, 0),
        "from 0 to 1": stretched(logits, 1e6) / 1e6,
        "exponentiated": np.exp(logits),
        "ten rows": stretched(logits[:10], 255),
    }
    found = {name: lookalike(torch.from_numpy(rows)) for name, rows in made.items()}
    assert found == dict.fromkeys(made)


@pytest.mark.parametrize("file", FILES)
def test_their_probabilities_are_not_however_they_are_scaled(shared_dir, file):
    with np.load(shared_dir / "logits" / f"{file}.npz") as arrays:
        p = softmax(arrays["logits"].astype(np.float64))
    made = {
        "as they are": (p, "look like probabilities"),
        "half": (p.astype(np.float16), "look like probabilities"),
        "percentages": (100 * p, "sum to about 100"),
        "times 255": (255 * p, "sum to about 255"),
        "times 10,000, rounded": (np.round(1e4 * p), "sum to about "),
        "50 votes": (np.random.default_rng(0).multinomial(50, p), "sum to about 50"),
    }
    if p.shape[1] == 10:
        made["bytes"] = (np.round(255 * p).astype(np.uint8), "sum to about 255")
        made["cut to bytes"] = ((255 * p).astype(np.uint8), "sum to about 25")
    for name, (rows, said) in made.items():
        found = lookalike(torch.from_numpy(rows))
        assert found is not None and said in found.what, name


@pytest.mark.parametrize("kind", [np.float32, np.uint64, ">i2", torch.float64])
def test_a_calibrator_given_votes_says_so_and_how_to_mend_it(made_up, kind):
    logits, labels = made_up()
    votes = np.random.default_rng(0).multinomial(50, softmax(logits))
    votes = torch.tensor(votes, dtype=kind) if isinstance(kind, torch.dtype) else votes.astype(kind)
    with pytest.warns(UserWarning, match=r"sum to about 50 .*divide each row by its sum and give"):
        TemperatureScaling().fit(votes, labels)


@pytest.mark.parametrize("shape", [(0, 3), (12, 3)])
def test_what_is_empty_or_not_finite_looks_like_nothing(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lookalike(torch.full(shape, torch.nan)) is None
        assert lookalike(torch.full(shape, torch.inf)) is None
