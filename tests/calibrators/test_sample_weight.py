"""Weights of the calibration points: the same as so many points, where a method takes them."""

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

from calibrators import (
    DirichletCalibration,
    IsotonicCalibration,
    LogitShiftPatching,
    TemperatureScaling,
    UtilityPatching,
    VectorScaling,
)
from calibrators.temperature import moments
from calibrators.vector import nll_and_derivatives
from metrics import InputError
from metrics.kernels.softmax import softmax

WEIGHTED = {
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "isotonic": IsotonicCalibration(),
    "isotonic_global": IsotonicCalibration(mode="global"),
}


@pytest.mark.parametrize("method", WEIGHTED.values(), ids=list(WEIGHTED))
def test_a_weight_counts_like_so_many_points(method, made_up):
    logits, labels = made_up(n=150)
    counts = np.random.default_rng(0).integers(0, 4, 150)
    weighted = method.fit(logits, labels, counts).predict_proba(logits)
    repeated = method.fit(np.repeat(logits, counts, axis=0), np.repeat(labels, counts))
    np.testing.assert_allclose(weighted, repeated.predict_proba(logits), atol=1e-6)
    plain = method.fit(logits, labels).predict_proba(logits)
    assert abs(plain - weighted).max() > 1e-3
    ones = method.fit(logits, labels, np.ones(150)).predict_proba(logits)
    np.testing.assert_array_equal(plain, ones)


def test_a_common_factor_of_the_weights_changes_nothing(made_up):
    logits, labels = made_up(n=150)
    weights = np.random.default_rng(1).exponential(size=150)
    one = TemperatureScaling().fit(logits, labels, weights)
    other = TemperatureScaling().fit(logits, labels, 64 * weights)
    assert other.temperature_ == pytest.approx(one.temperature_, rel=1e-12)
    assert other.nll_ == pytest.approx(one.nll_, rel=1e-12)


def test_weighted_isotonic_maps_are_scikit_learns(made_up):
    logits, labels = made_up(n=200, classes=3)
    weights = np.random.default_rng(2).exponential(size=200)
    ours = IsotonicCalibration(normalize=False).fit(logits, labels, weights)
    p = softmax(torch.from_numpy(logits)).numpy()
    for c in range(3):
        theirs = IsotonicRegression(out_of_bounds="clip").fit(p[:, c], labels == c, weights)
        np.testing.assert_allclose(ours.predict_proba(logits)[:, c], theirs.predict(p[:, c]))


def test_the_torch_side_weighs_like_the_compiled_one(made_up, monkeypatch):
    logits, labels = map(torch.from_numpy, made_up(n=90))
    weights = torch.rand(90, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    point = torch.tensor([[0.7] * 5, [0.1, 0.0, -0.2, 0.3, 0.0]], dtype=torch.float64)
    compiled = moments(logits, labels, 0.7, weights)
    derivatives = nll_and_derivatives(logits, labels, point, True, weights)
    for module in ("temperature", "vector"):
        monkeypatch.setattr(f"calibrators.{module}.has_kernels", lambda _: False)
    assert vars(moments(logits, labels, 0.7, weights)) == pytest.approx(vars(compiled), rel=1e-12)
    again = nll_and_derivatives(logits, labels, point, True, weights)
    for one, other in zip(again, derivatives, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize(
    "method",
    [
        DirichletCalibration(odir=1.0, l2=0.1),
        UtilityPatching(),
        LogitShiftPatching(),
        TemperatureScaling(loss="brier"),
        VectorScaling(loss="brier"),
    ],
    ids=lambda method: f"{type(method).__name__}-{getattr(method, 'loss', '')}",
)
def test_methods_without_a_weighted_form_say_so(method, made_up):
    logits, labels = made_up(n=40)
    with pytest.raises(InputError, match="sample_weight: "):
        method.fit(logits, labels, np.ones(40))


@pytest.mark.parametrize("weights", [np.ones(39), -np.ones(40), np.zeros(40), np.full(40, np.nan)])
def test_weights_that_are_none_are_refused(weights, made_up):
    with pytest.raises(InputError, match="sample_weight"):
        TemperatureScaling().fit(*made_up(n=40), weights)
