"""Temperature scaling: the exact optimum, its boundary cases, and what it says about them."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from utility_calibration.calibrators import TemperatureScaling, reference
from utility_calibration.calibrators.extremes import row_extremes
from utility_calibration.calibrators.reference import log_loss
from utility_calibration.calibrators.solvers import temperature
from utility_calibration.calibrators.solvers.moments import moments
from utility_calibration.calibrators.solvers.root import solve_increasing
from utility_calibration.calibrators.solvers.temperature import (
    Passes,
    fit_temperature,
    least_brier,
)
from utility_calibration.metrics.kernels.threads import set_threads


@settings(max_examples=30)
@given(
    n=st.integers(5, 60),
    classes=st.integers(2, 6),
    power=st.integers(-6, 4),
    seed=st.integers(0, 10**6),
)
def test_it_finds_the_minimum_of_the_likelihood(n, classes, power, seed):
    generator = np.random.default_rng(seed)
    logits = 10.0**power * generator.normal(size=(n, classes))
    labels = generator.integers(0, classes, n)
    found = fit_temperature(logits, labels)
    scaled, options = logits * 10.0**-power, {"bounds": (0, 20), "options": {"xatol": 1e-10}}
    searched = scipy.optimize.minimize_scalar(lambda b: log_loss(b * scaled, labels), **options)
    if found.outcome == "optimum":
        assert found.nll <= searched.fun + 1e-12
        at = moments(logits, labels, found.beta)
        assert abs(at.slope) <= 8 * at.rounding
    else:
        assert found.outcome in ("uninformative", "separable")
        if found.outcome == "uninformative":
            assert searched.fun >= found.nll - 1e-6  # at β near 0, not 0


@pytest.mark.parametrize("name", ["cifar10_resnet56", "cifar100_resnet56"])
def test_real_logits(real_split, name):
    (logits, labels), _ = real_split(name)
    fitted = TemperatureScaling().fit(logits, labels)
    beta = reference.temperature(logits, labels)
    assert fitted.outcome_ == "optimum"
    assert fitted.n_evaluations_ <= 12
    z = logits.astype(float)
    assert fitted.nll_ <= log_loss(beta * z, labels) + 1e-14
    assert 1 / fitted.temperature_ == pytest.approx(beta, rel=1e-4)
    assert fitted.nll_ == pytest.approx(log_loss(z / fitted.temperature_, labels), rel=1e-12)


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_moments_are_those_of_the_definition(made_up, loss, beta):
    """33 rows are one more than a kernel takes at a time; -inf adds nothing, also at β = 0."""
    logits, labels = made_up(n=33, classes=7)
    z = logits.astype(np.float64)
    z[np.arange(33), (labels + 1) % 7] = -np.inf
    weights = np.linspace(0.5, 2, 33)

    def mean_loss(b):
        scaled = np.where(np.isneginf(z), -np.inf, b * np.where(np.isneginf(z), 0.0, z))
        log_p = scipy.special.log_softmax(scaled, axis=1)
        losses = -log_p[np.arange(33), labels]
        if loss == "brier":
            losses = np.square(np.exp(log_p) - np.eye(7)[labels]).sum(axis=1)
        return np.average(losses, weights=weights)

    at, step = moments(z, labels, beta, loss, weights), 1e-3
    around = [mean_loss(beta + k * step) for k in (-2, -1, 0, 1, 2)]
    assert at.loss == pytest.approx(around[2], rel=1e-13)
    slope = np.dot(around, [1, -8, 0, 8, -1]) / (12 * step)
    assert at.slope == pytest.approx(slope, rel=1e-6)
    curvature = np.dot(around, [-1, 16, -30, 16, -1]) / (12 * step**2)
    assert at.curvature == pytest.approx(curvature, rel=1e-5)


def test_a_search_that_begins_at_few_rows_ends_at_the_same_temperature(made_up, monkeypatch):
    logits, labels = made_up(n=4000)
    quick = fit_temperature(logits, labels)
    monkeypatch.setattr(temperature, "FIRST_ROWS", len(labels))
    slow = fit_temperature(logits, labels)
    assert quick.beta == pytest.approx(slow.beta, rel=1e-13)
    assert quick.evaluations < slow.evaluations


def test_a_search_ends_where_its_first_rows_are_separable(made_up):
    logits, labels = made_up(n=4000)
    step = len(labels) // temperature.FIRST_ROWS
    labels[::step] = logits[::step].argmax(axis=1)
    found = fit_temperature(logits, labels)
    assert found.outcome == "optimum"
    at = moments(logits, labels, found.beta)
    assert abs(at.slope) <= 8 * at.rounding


def test_row_extremes_are_those_of_numpy(made_up):
    logits, _ = made_up(n=60_000)  # two blocks
    logits[3, 1] = -np.inf
    low, top = row_extremes(logits[:, ::-1])
    np.testing.assert_array_equal(low, logits.min(axis=1))
    np.testing.assert_array_equal(top, logits.max(axis=1))


def test_the_thread_count_does_not_matter(made_up):
    logits, labels = made_up(n=200_000)
    one = moments(logits, labels, 0.7)
    set_threads(2)
    assert moments(logits, labels, 0.7) == one


CLASSES = np.arange(30) % 3
BOUNDARY = {
    "separable": (4 * np.eye(3)[CLASSES] - 1, CLASSES),  # without the 1 they look like votes
    "uninformative": (-4 * np.eye(3)[CLASSES], CLASSES),
    "constant": (np.full((30, 3), 7.0), CLASSES),
    # Two classes share every maximum: no temperature brings the likelihood to the target.
    "bound": (np.eye(3)[CLASSES] + np.eye(3)[(CLASSES + 1) % 3], CLASSES),
}


@pytest.mark.parametrize("outcome", BOUNDARY)
def test_boundary_cases_say_so_in_one_line(outcome):
    logits, labels = BOUNDARY[outcome]
    with pytest.warns(ConvergenceWarning, match="T = ") as caught:
        fitted = TemperatureScaling().fit(logits, labels)
    assert fitted.outcome_ == outcome
    assert len(caught) == 1 and "\n" not in str(caught[0].message)
    probabilities = fitted.predict_proba(logits)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    if outcome == "separable":  # the rule of succession
        expected = pytest.approx(np.log(32 / 31), rel=1e-10)
        assert log_loss(logits / fitted.temperature_, labels) == expected
    if outcome != "bound":
        with pytest.warns(ConvergenceWarning, match="T = ") as caught:
            brier_fit = TemperatureScaling(loss="brier").fit(logits, labels)
        assert len(caught) == 1
        assert (brier_fit.temperature_, brier_fit.outcome_) == (fitted.temperature_, outcome)


def test_an_optimum_beyond_the_bound_of_the_inverse_temperature_is_at_the_bound():
    """One point of a hundred is wrong by 1e-9, and the third class makes the spread large."""
    logits = np.tile([0.0, -1e-3, -1000.0], (100, 1))
    logits[0, 1] = 1e-9
    found = fit_temperature(logits, np.zeros(100, int))
    assert found.outcome == "bound"
    assert found.beta * found.spread == pytest.approx(1e6)


@pytest.mark.parametrize("start", [1e-6, 0.3, 50.0])
def test_the_solver_is_safeguarded_where_newton_diverges(start):
    def arctan(x):
        value = np.arctan(x - 3)
        return value, 1 / (1 + (x - 3) ** 2), abs(value) < 1e-14

    root, reached = solve_increasing(arctan, start, 0.0, 1e6)
    assert reached
    assert root == pytest.approx(3, abs=1e-8)


# ---- The temperature of least Brier score --------------------------------------------------------


def brier(logits, labels, beta):
    p = scipy.special.softmax(beta * logits.astype(np.float64), axis=1)
    return ((p - np.eye(logits.shape[1])[labels]) ** 2).sum(axis=1).mean()


@settings(max_examples=20)
@given(
    n=st.integers(2, 40),
    classes=st.integers(2, 5),
    spread=st.floats(0, 3),
    seed=st.integers(0, 10**6),
)
def test_no_point_of_a_dense_grid_is_lower(n, classes, spread, seed):
    """Rows of very different scale make several minima."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes)) * 10 ** generator.uniform(-spread, spread, (n, 1))
    labels = generator.integers(0, classes, n)
    passes = Passes(logits, labels, "brier", None)
    beta, _ = least_brier(passes, 1e-6, 1e6)
    score = passes.at(beta).loss
    assert score == pytest.approx(brier(logits, labels, beta), abs=1e-12)
    lowest = min(brier(logits, labels, beta) for beta in np.geomspace(1e-6, 1e6, 1500))
    assert score <= lowest + 1e-9
