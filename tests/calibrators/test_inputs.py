"""Probabilities in the place of logits: their logarithm, and a warning where it was forgotten.

The warning must come for probabilities, percentages and votes, and never for logits.
"""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from tests.refusals import refuses
from utility_calibration.calibrators import TemperatureScaling, Uncalibrated, from_probabilities
from utility_calibration.calibrators.inputs import lookalike
from utility_calibration.metrics import negative_log_likelihood
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

P = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
Y = np.array([0, 1, 1])


def test_their_softmax_is_the_rows():
    back = Uncalibrated().fit(from_probabilities(P), Y).predict_proba(from_probabilities(P))
    np.testing.assert_allclose(back, P, atol=3 * LIKELIHOOD_FLOOR, rtol=1e-15)
    assert negative_log_likelihood(back, Y) == pytest.approx(negative_log_likelihood(P, Y))
    single = np.array([0.25, 1.0, 0.0])
    np.testing.assert_allclose(np.exp(from_probabilities(single))[:, 1], single, atol=2e-12)


@pytest.mark.parametrize("bad", [np.log(P + 1e-9), P / 2, "text", np.zeros((2, 2, 2))])
def test_what_are_no_probabilities(bad):
    with refuses("probabilities"):
        from_probabilities(bad)


def test_rounding_is_renormalised_with_a_warning():
    with pytest.warns(UserWarning, match="renormalised"):
        logits = from_probabilities(np.array([[1.00005, -0.00005]]))
    np.testing.assert_allclose(logits, [[0, np.log(LIKELIHOOD_FLOOR)]], atol=1e-12)


def stretched(values, largest):
    """Whole numbers from 0 to `largest`, as quantising leaves them."""
    return np.round((values - values.min()) / np.ptp(values) * largest)


@pytest.mark.parametrize("file", ["cifar10_repvgg_a0", "cifar100_resnet56"])
def test_real_logits_and_their_probabilities_are_told_apart_however_they_are_scaled(
    real_split, file
):
    logits = real_split(file)[0][0].astype(np.float64)
    centred = logits - logits.mean(axis=1, keepdims=True)
    p = softmax(logits, axis=1)
    made = {
        "as they are": (logits, None),
        "the smallest 0": (logits - logits.min(), None),
        "one sum": (centred - centred.min(), None),
        "bytes of one sum": (stretched(centred, 255), None),
        "none negative": (np.maximum(logits, 0), None),
        "from 0 to 1": (stretched(logits, 1e6) / 1e6, None),
        "probabilities": (p, "probabilities"),
        "percentages": (100 * p, "100"),
        "times 10,000, rounded": (np.round(1e4 * p), "sum"),
        "50 votes": (np.random.default_rng(0).multinomial(50, p), "50"),
    }
    for name, (rows, said) in made.items():
        found = lookalike(rows)
        assert found is None if said is None else said in found.what, name


def test_a_calibrator_given_probabilities_or_votes_says_so_and_how_to_mend_it(made_up):
    for values in (P, P.astype(np.float32)):
        with pytest.warns(UserWarning, match="from_probabilities"):
            TemperatureScaling().fit(values, Y)
    fitted = Uncalibrated().fit(np.log(P), Y)
    with pytest.warns(UserWarning, match="from_probabilities"):
        fitted.predict_proba(np.tile(P, (10, 1)))
    logits, labels = made_up()
    votes = np.random.default_rng(0).multinomial(50, softmax(logits.astype(np.float64), axis=1))
    with pytest.warns(UserWarning, match="about 50"):
        TemperatureScaling().fit(votes, labels)
    of_two = np.stack([50 - votes[:, 0], votes[:, 0]], axis=1)
    with pytest.warns(UserWarning, match="about 50"):
        TemperatureScaling().fit(of_two, (labels == 0).astype(int))


def votes(n=300):
    """Shares of ten votes, of which many are 0, and the labels; some labels have none."""
    rng = np.random.default_rng(5)
    true = rng.dirichlet(np.ones(4), n)
    p = np.array([rng.multinomial(10, row) for row in true]) / 10
    return p, np.array([rng.choice(4, p=row) for row in true])


@pytest.mark.parametrize("inputs", ["probabilities", "log_probabilities"])
def test_only_what_learns_raises_zeros(inputs):
    p, y = votes()
    with np.errstate(divide="ignore"):
        given = p if inputs == "probabilities" else np.log(p)
    back = Uncalibrated(inputs=inputs).fit(given, y).predict_proba(given)
    np.testing.assert_allclose(back, p, atol=1e-15)
    assert ((back == 0) == (p == 0)).all()
    fitted = TemperatureScaling(inputs=inputs).fit(given, y)
    plain = TemperatureScaling().fit(from_probabilities(p), y)
    np.testing.assert_array_equal(
        fitted.predict_proba(given), plain.predict_proba(from_probabilities(p))
    )
    if inputs == "log_probabilities":  # what was raised before is known again, also in float32
        raised = from_probabilities(p).astype(np.float32)
        np.testing.assert_allclose(
            fitted.predict_proba(raised), fitted.predict_proba(given), atol=1e-6
        )
    module = fitted.to_module(torch.float64)
    expected = fitted.predict_proba(given)
    np.testing.assert_allclose(module(torch.from_numpy(given)).numpy(), expected, atol=1e-12)


def test_small_probabilities_are_no_votes():
    p, y = votes()
    small = np.where(p == 0, 1e-15, p)
    small = small / small.sum(axis=1, keepdims=True)
    marked = TemperatureScaling().fit(from_probabilities(p), y)
    unmarked = TemperatureScaling().fit(from_probabilities(small), y)
    assert marked.conditioning_[0] > -np.inf
    assert unmarked.conditioning_[0] == -np.inf
    assert from_probabilities(small).min() > from_probabilities(p).min()
