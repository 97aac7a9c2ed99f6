"""Calibrators against scikit-learn, probmetrics and netcal: the same optimum, the same map."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from tests.peers.conftest import package, real
from utility_calibration.calibrators import (
    DirichletCalibration,
    IsotonicCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.reference import log_loss, penalised_loss
from utility_calibration.metrics import negative_log_likelihood
from utility_calibration.scripts.speed import peers
from utility_calibration.scripts.speed.cases import Data, Size, data

OPTIMAL = 1e-8
"""How far above another solver's likelihood ours may end, in nats: float32 logits round."""
SOLVER = 1e-4
"""How far other solvers may stop above the best likelihood: some of them work in float32."""
MINIMA = {
    ("synthetic", 0.1, 0.1): 0.3640057348,
    ("synthetic", 10.0, 1.0): 0.3660592886,
    ("synthetic", 0.01, 100.0): 0.3643459379,
    ("cifar10", 0.1, 0.1): 0.1350529467,
    ("cifar10", 10.0, 1.0): 0.1762361603,
    ("cifar10", 0.01, 100.0): 0.1265814657,
}
"""Minima of the objective of dirichletcal 0.3.dev4, of the authors of the method, by λ and μ.

They were found by Newton's method (SciPy's trust-exact) on ln p; the package's own solver reaches
them. It is not run here, because no current version of pip installs the package.
"""
RIDGE = 1e-6
"""Nats that our ridge and tolerance may cost; dirichletcal has no ridge."""


def fitted_nll(calibrator: Calibrator, inputs: Data) -> float:
    p = calibrator.fit(inputs.logits, inputs.labels).predict_proba(inputs.logits)
    return float(negative_log_likelihood(p, inputs.labels, floor=1e-300))


def probmetrics(name: str, inputs: Data) -> Any:
    calibrator = getattr(package("probmetrics.calibrators"), name)()
    logits = package("probmetrics.distributions").CategoricalLogits(torch.from_numpy(inputs.logits))
    return calibrator.fit_torch(logits, torch.from_numpy(inputs.labels))


def probmetrics_temperature(inputs: Data) -> NDArray[Any]:
    fitted = probmetrics("TemperatureScalingCalibrator", inputs)
    return inputs.logit_arrays[0] * fitted.invtemp_


def netcal_temperature(inputs: Data) -> NDArray[Any]:
    calibrator = package("netcal.scaling").TemperatureScaling()
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bars
        fitted = calibrator.fit(*inputs.arrays)
    return inputs.logit_arrays[0] * float(np.ravel(fitted.temperature)[0])


def probmetrics_vector(inputs: Data) -> NDArray[Any]:
    fitted = probmetrics("VectorScalingCalibrator", inputs)
    return inputs.logit_arrays[0] / fitted.temp_.numpy() + fitted.bias_.numpy()


@pytest.mark.parametrize(
    ("calibrator", "peer"),
    [
        (TemperatureScaling(), probmetrics_temperature),
        (TemperatureScaling(), netcal_temperature),
        (VectorScaling(), probmetrics_vector),
    ],
)
def test_scaling_reaches_the_likelihood_of_others_or_a_better_one(
    calibrator: Calibrator, peer: Callable[[Data], NDArray[Any]], inputs: Data
) -> None:
    theirs = log_loss(peer(inputs), inputs.labels)
    assert theirs - SOLVER <= fitted_nll(calibrator, inputs) <= theirs + OPTIMAL


def test_isotonic_maps_are_those_of_netcal(inputs: Data) -> None:
    calibrator = package("netcal.binning").IsotonicRegression().fit(*inputs.arrays)
    ours = IsotonicCalibration().fit(inputs.logits, inputs.labels).predict_proba(inputs.logits)
    np.testing.assert_allclose(ours, calibrator.transform(inputs.arrays[0]), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "ours"),
    [("SMSCalibrator", StructuredMatrixScaling()), ("SVSCalibrator", StructuredVectorScaling())],
)
def test_structured_scaling_reaches_the_likelihood_of_probmetrics(
    name: str, ours: Calibrator, inputs: Data
) -> None:
    """Its solver stops earlier, and it rounds the logarithms to float32."""
    p, labels = inputs.arrays
    peer = getattr(package("probmetrics.calibrators"), name)().fit(p, labels)
    theirs = negative_log_likelihood(np.asarray(peer.predict_proba(p), float), labels)
    assert fitted_nll(ours, inputs) == pytest.approx(theirs, abs=SOLVER)


def test_dirichlet_without_penalties_is_logistic_regression_on_log_probabilities() -> None:
    """As Kull et al. (2019, sec. 3) say."""
    inputs = data(Size(3000, 5))
    x, labels = np.log(inputs.arrays[0]), inputs.arrays[1]
    regression = LogisticRegression(C=np.inf, tol=1e-8, max_iter=5000).fit(x, labels)
    theirs = negative_log_likelihood(regression.predict_proba(x), labels)
    ours = fitted_nll(DirichletCalibration(odir=0.0, l2=0.0), inputs)
    assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "odir", "l2"),
    [pytest.param(*key, marks=pytest.mark.slow if key[0] == "cifar10" else ()) for key in MINIMA],
)
def test_dirichlet_with_penalties_reaches_the_minimum_of_dirichletcal(
    name: str, odir: float, l2: float, request: pytest.FixtureRequest
) -> None:
    if name == "synthetic":
        inputs = data(Size(1000, 4))
    else:
        folder = request.getfixturevalue("shared_dir") / "logits"
        inputs = real(folder, "cifar10_resnet56", points=1000)
    logits, labels = inputs.logit_arrays
    fitted = DirichletCalibration(odir=odir, l2=l2, max_iterations=1000).fit(logits, labels)
    point = np.column_stack([fitted.matrix_, fitted.intercept_])
    ours = penalised_loss(logits, labels, point, odir, l2)
    theirs = MINIMA[name, odir, l2]
    assert theirs - 1e-8 <= ours <= theirs + RIDGE


def test_mcgrad_and_patches_of_groups_both_repair_a_group() -> None:
    """One of four groups has four times its forecast's odds; the mean error of each group falls."""
    package("mcgrad")
    random = np.random.default_rng(0)
    inputs = data(Size(8000, 2))
    p, _ = peers.binary(inputs)
    groups = peers.groups_of(inputs)
    odds = p / (1 - p) * np.where(groups == 0, 4.0, 1.0)
    hits = (random.random(len(p)) < odds / (1 + odds)).astype(np.int64)
    drawn = replace(inputs, labels=1 - hits)  # the first class is the one that hits

    def largest_gap(repaired: NDArray[Any]) -> float:
        return max(abs(float((repaired - hits)[groups == g].mean())) for g in range(peers.GROUPS))

    before = largest_gap(p)
    for repair in (peers.repaired_by_us, peers.repaired_by_mcgrad):
        assert largest_gap(repair(drawn)) < before / 3
