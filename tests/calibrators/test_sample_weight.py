"""Weights of the calibration points: the same as so many points, where a method takes them."""

import numpy as np
import pytest
import torch

from tests.calibrators.test_conventions import METHODS
from tests.refusals import refuses
from utility_calibration.calibrators import (
    DirichletCalibration,
    LogitShiftPatching,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from utility_calibration.calibrators.dirichlet.calibrator import TuningFits
from utility_calibration.calibrators.dirichlet.linear_map import map_loss
from utility_calibration.calibrators.losses import residuals
from utility_calibration.calibrators.vector import VectorMapProblem
from utility_calibration.metrics.kernels.softmax import softmax

WEIGHTED = {
    **{name: method for name, method in METHODS.items() if method.takes_weights},
    "temperature_brier": TemperatureScaling(loss="brier"),
    "vector_brier": VectorScaling(loss="brier"),
    "dirichlet_brier": DirichletCalibration(odir=1.0, l2=0.1, loss="brier"),
}
del WEIGHTED["Uncalibrated"]  # it takes weights, and has no use for them


@pytest.mark.parametrize("method", WEIGHTED.values(), ids=list(WEIGHTED))
def test_a_weight_counts_like_so_many_points(method, made_up):
    logits, labels = made_up(n=150)
    counts = np.random.default_rng(0).integers(0, 4, 150)
    weighted = method.fit(logits, labels, counts).predict_proba(logits)
    repeated = method.fit(np.repeat(logits, counts, axis=0), np.repeat(labels, counts))
    # Dirichlet's solver ends within 1e-9 nats of the optimum, where p is off by the root of that.
    atol = 1e-4 if isinstance(method, DirichletCalibration | StructuredMatrixScaling) else 1e-6
    np.testing.assert_allclose(weighted, repeated.predict_proba(logits), rtol=0, atol=atol)
    plain = method.fit(logits, labels).predict_proba(logits)
    assert abs(plain - weighted).max() > 1e-3
    ones = method.fit(logits, labels, np.ones(150)).predict_proba(logits)
    np.testing.assert_array_equal(plain, ones)


def test_the_hold_out_of_dirichlets_tuning_is_weighted(made_up):
    logits, labels = made_up(n=300)
    weights = np.random.default_rng(3).exponential(size=300)
    data = (torch.from_numpy(array) for array in (logits.astype(np.float64), labels, weights))
    runs = TuningFits(DirichletCalibration(on="logits"), *data)
    score = runs.score(odir=20.0, l2=5.0)
    held = np.random.default_rng(0).permutation(300)[:90]
    found = runs.earlier[-1][1].numpy()  # the map that was scored
    p = softmax(torch.from_numpy(logits[held] @ found[:, :5].T + found[:, 5])).numpy()
    losses = -np.log(p[np.arange(90), labels[held]])
    assert score == pytest.approx(np.average(losses, weights=weights[held]), rel=1e-12)
    assert abs(losses.mean() - score) > 1e-2  # without weights it is another number


def test_the_torch_side_weighs_like_the_compiled_one(made_up, monkeypatch):
    logits, labels = map(torch.from_numpy, made_up(n=90))
    weights = torch.rand(90, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    point = torch.tensor([[0.7] * 5, [0.1, 0.0, -0.2, 0.3, 0.0]], dtype=torch.float64)

    def all_sums():
        for loss in ("nll", "brier"):
            problem = VectorMapProblem(logits, labels, weights, loss)
            yield from problem.loss_and_gradient(point)
            yield problem.hessian(0.7)
            slope = torch.empty(5, 6, dtype=torch.float64)
            yield map_loss(logits.double(), labels, whole, slope, loss=loss, counts=weights)
            yield slope
            single = logits.clone()
            yield residuals(single, labels, weights, loss)
            yield single

    whole = torch.cat([point[0].diag(), point[1][:, None]], dim=1)
    compiled = list(all_sums())
    monkeypatch.setattr("utility_calibration.calibrators.losses.has_kernels", lambda _: False)
    for one, other in zip(all_sums(), compiled, strict=True):
        is_single = getattr(one, "dtype", None) == torch.float32
        atol = 1e-6 if is_single else 1e-14
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=atol)


@pytest.mark.parametrize("weights", [np.ones(39), -np.ones(40), np.zeros(40), np.full(40, np.nan)])
def test_weights_that_are_none_are_refused(weights, made_up):
    with refuses("sample_weight"):
        TemperatureScaling().fit(*made_up(n=40), weights)
    with refuses("sample_weight", fix="draw points"):
        LogitShiftPatching().fit(*made_up(n=40), np.ones(40))
