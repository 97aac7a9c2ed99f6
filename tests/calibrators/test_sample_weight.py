"""Weights of the calibration points: the same as so many points, where a method takes them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.calibrators.test_conventions import METHODS
from tests.refusals import refuses
from utility_calibration.calibrators import (
    DirichletCalibration,
    LogitShiftPatching,
    StructuredMatrixScaling,
    TemperatureScaling,
    UtilityPatching,
    VectorScaling,
    Wrapped,
)
from utility_calibration.calibrators.dirichlet.tuning import TuningFits
from utility_calibration.metrics.kernels.softmax import softmax

WEIGHTED = {
    **{name: method for name, method in METHODS.items() if method.takes_weights},
    "temperature_brier": TemperatureScaling(loss="brier"),
    "vector_brier": VectorScaling(loss="brier"),
    "dirichlet_brier": DirichletCalibration(odir=1.0, l2=0.1, loss="brier"),
}
del WEIGHTED["Uncalibrated"]  # it takes weights, and has no use for them
for name in ("PooledScaling", "LogitShiftPatching"):
    del WEIGHTED[name]  # their folds are of rows; test_pooled.py puts copies into one fold


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
    data = logits.astype(np.float64), labels, weights
    runs = TuningFits(*data, loss="nll", share=0.3, seed=0)
    score = runs.score(odir=20.0, l2=5.0)
    held = np.random.default_rng(0).permutation(300)[:90]
    found = runs.earlier[-1][1]  # the map that was scored
    p = softmax(logits[held] @ found[:, :5].T + found[:, 5])
    losses = -np.log(p[np.arange(90), labels[held]])
    assert score == pytest.approx(np.average(losses, weights=weights[held]), rel=1e-12)
    assert abs(losses.mean() - score) > 1e-2  # without weights it is another number


@pytest.mark.parametrize("weights", [np.ones(39), -np.ones(40), np.zeros(40), np.full(40, np.nan)])
def test_weights_that_are_none_are_refused(weights, made_up):
    with refuses("sample_weight"):
        TemperatureScaling().fit(*made_up(n=40), weights)
    with refuses("sample_weight", fix="draw points"):
        Wrapped(LogisticRegression()).fit(*made_up(n=40), np.ones(40))


def test_groups_and_weights_go_together(made_up):
    """A group whose points have the weight 0 is no group, and ones change nothing."""
    logits, labels = made_up(n=400)
    labels[:120] = (labels[:120] + 1) % 5
    names = np.repeat(["north", "south", "west"], [120, 200, 80])
    method = LogitShiftPatching("temperature", steps=5, max_steps=20)
    plain = method.fit(logits, labels, groups=names).predict_proba(logits, groups=names)
    ones = method.fit(logits, labels, np.ones(400), names).predict_proba(logits, groups=names)
    np.testing.assert_array_equal(plain, ones)
    assert "north" in method.group_names_
    weights = np.where(names == "north", 0, 2)
    assert method.fit(logits, labels, weights, names).groups_.tolist() == ["south", "west"]
    few = np.where(names == "west", 1e-3, 1.0)  # fewer than 50 points by weight
    with pytest.warns(UserWarning, match="west"):
        method.fit(logits, labels, few, names)


@pytest.mark.parametrize("method", [LogitShiftPatching(), UtilityPatching(tuning_runs=3)])
def test_what_patching_chooses_by_held_out_points_is_weighted(method, made_up):
    """Points whose labels are drawn at random matter as much as their weights say."""
    logits, labels = made_up(n=600)
    noisy = np.arange(600) < 300
    labels[noisy] = np.random.default_rng(5).integers(0, 5, 300)
    weights = np.where(noisy, 1e-6, 1.0)
    weighted = method.fit(logits, labels, weights).predict_proba(logits)
    alone = method.fit(logits[~noisy], labels[~noisy]).predict_proba(logits)
    both = method.fit(logits, labels).predict_proba(logits)
    assert np.abs(weighted - alone).mean() < 0.5 * np.abs(weighted - both).mean()
