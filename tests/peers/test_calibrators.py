"""Calibrators against scikit-learn, probmetrics and netcal: the same optimum, the same map."""

from __future__ import annotations

import numpy as np
import pytest

from calibrators import (
    DirichletCalibration,
    IsotonicCalibration,
    TemperatureScaling,
    VectorScaling,
)
from metrics import negative_log_likelihood
from tests.peers import packages as peers
from tests.peers.conftest import answer_of
from tests.peers.inputs import Arrays, Size, arrays

OPTIMAL = 1e-8
"""How far above another solver's likelihood ours may end, in nats: float32 logits round."""


def fitted_nll(calibrator, inputs: Arrays) -> float:
    p = calibrator.fit(inputs.logits, inputs.labels).predict_proba(inputs.logits)
    return negative_log_likelihood(p, inputs.labels, floor=1e-300)


TEMPERATURES = [peers.sklearn_temperature, peers.probmetrics_temperature, peers.netcal_temperature]


@pytest.mark.parametrize("peer", TEMPERATURES)
def test_temperature_reaches_the_likelihood_of_others_or_a_better_one(peer, inputs) -> None:
    theirs = float(answer_of(peer(), inputs)["nll"])
    assert theirs - peers.SOLVER <= fitted_nll(TemperatureScaling(), inputs) <= theirs + OPTIMAL


def test_vector_scaling_reaches_the_likelihood_of_probmetrics_or_a_better_one(inputs) -> None:
    theirs = float(answer_of(peers.probmetrics_vector(), inputs)["nll"])
    assert theirs - peers.SOLVER <= fitted_nll(VectorScaling(), inputs) <= theirs + OPTIMAL


@pytest.mark.parametrize("peer", [peers.sklearn_isotonic, peers.netcal_isotonic])
def test_isotonic_maps_are_those_of_others(peer, inputs: Arrays) -> None:
    theirs = answer_of(peer(), inputs)["normalized"]
    calibrator = IsotonicCalibration().fit(inputs.logits, inputs.labels)
    ours = calibrator.predict_proba(inputs.logits[: peers.ISOTONIC_POINTS])
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_dirichlet_without_penalties_is_logistic_regression_on_log_probabilities() -> None:
    """As Kull et al. (2019, sec. 3) say. With penalties: test_dirichletcal.py."""
    from sklearn.linear_model import LogisticRegression

    inputs = arrays(Size(3000, 5))
    x = np.log(inputs.probabilities)
    regression = LogisticRegression(C=np.inf, tol=1e-8, max_iter=5000).fit(x, inputs.labels)
    p = regression.predict_proba(x)
    theirs = negative_log_likelihood(p, inputs.labels)
    ours = fitted_nll(DirichletCalibration(odir=0.0, l2=0.0), inputs)
    assert ours == pytest.approx(theirs, abs=1e-5)
