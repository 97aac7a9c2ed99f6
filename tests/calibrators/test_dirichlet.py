"""Dirichlet calibration: its penalised optimum, its floor at temperature scaling, its tuning."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refuses
from utility_calibration.calibrators import DirichletCalibration, TemperatureScaling, reference
from utility_calibration.calibrators.dirichlet import linear_map as map_module
from utility_calibration.calibrators.dirichlet.tuning import HOPELESS
from utility_calibration.calibrators.reference import log_probabilities
from utility_calibration.metrics.kernels.threads import set_threads


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_seed_fits_the_same_bits_on_any_number_of_threads(made_up):
    logits, labels = made_up(n=600, classes=200)[0], np.arange(600) % 200
    fits = []
    for threads in (1, 2):  # which the fixture `one_thread` restores
        set_threads(threads)
        method = DirichletCalibration(odir=4e3, l2=10.0, max_iterations=4)
        fits.append(method.fit(logits, labels).predict_proba(logits))
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize("on", ["log_probabilities", "logits"])
def test_it_minimises_the_stated_formula(made_up, on, loss):
    """The formula of the docstring; its ridge is left out."""
    logits, labels = made_up(n=120, classes=3)
    fitted = DirichletCalibration(on=on, odir=0.3, l2=0.2, loss=loss).fit(logits, labels)
    inputs = log_probabilities(logits) if on == "log_probabilities" else logits.astype(np.float64)
    centre = inputs.mean() if on == "logits" else 0.0
    inputs -= centre
    truth = np.eye(3)[labels]

    def objective(flat):
        matrix, intercept = flat[:9].reshape(3, 3), flat[9:]
        log_p = scipy.special.log_softmax(inputs @ matrix.T + intercept, axis=1)
        off = matrix[~np.eye(3, dtype=bool)]
        misfit = -log_p * truth if loss == "nll" else (np.exp(log_p) - truth) ** 2
        penalty = 0.3 * (off**2).mean() + 0.2 * (intercept**2).mean()
        return misfit.sum(axis=1).mean() + penalty

    intercept = fitted.intercept_ + centre * fitted.matrix_.sum(axis=1)
    found = np.concatenate([fitted.matrix_.ravel(), intercept])
    for start in (found, np.concatenate([np.eye(3).ravel(), np.zeros(3)])):
        best = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
        assert objective(found) <= best.fun + 1e-8
    expected = scipy.special.softmax(inputs @ fitted.matrix_.T + intercept, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, rtol=1e-10)


def test_a_slow_fit_renews_its_curvature_and_ends_no_higher(made_up):
    logits, labels = made_up(n=200, classes=20)
    inputs = log_probabilities(logits)
    weights = map_module.odir_weights(20, 0.1, 0.1)
    problem = map_module.LinearMapProblem(inputs, labels, beta=1.0, spread=1.0)
    plain = problem.solve(weights, max_iterations=2000)
    renewed = problem.solve_renewed(weights, max_iterations=2000)

    def objective(point):
        away = np.square(point - problem.start)
        penalty = (weights * away).sum() + 0.5 * (problem.ridge * away).sum()
        return map_module.map_loss(inputs, labels, point) + float(penalty)

    assert map_module.RENEWED < renewed.iterations < plain.iterations
    assert renewed.converged and objective(renewed.point) <= objective(plain.point) + 1e-12


@settings(max_examples=20)
@given(
    n=st.integers(4, 80),
    classes=st.integers(2, 6),
    unit=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
    odir=st.floats(0, 1e3),
    l2=st.floats(0, 1e3),
    on=st.sampled_from(["log_probabilities", "logits"]),
    seed=st.integers(0, 10**6),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_never_worse_than_temperature_scaling(n, classes, unit, odir, l2, on, seed):
    n, generator = max(n, classes), np.random.default_rng(seed)
    logits = unit * generator.normal(size=(n, classes))
    labels = generator.permutation(n) % classes
    fitted = DirichletCalibration(on=on, odir=odir, l2=l2).fit(logits, labels)
    temperature = TemperatureScaling().fit(logits, labels)
    assert fitted.nll_ <= temperature.nll_ + 1e-12
    p = fitted.predict_proba(logits)[np.arange(n), labels]
    with np.errstate(divide="ignore"):
        assert fitted.nll_ == pytest.approx(-np.log(p).mean(), rel=1e-6, abs=1e-9)


def test_float32_products_give_the_same_map(made_up, monkeypatch):
    logits, labels = made_up(n=1500, classes=8)
    double = DirichletCalibration(odir=5.0, l2=1.0).fit(logits, labels)
    monkeypatch.setattr(map_module, "DOUBLE_WORK", 0)
    single = DirichletCalibration(odir=5.0, l2=1.0).fit(logits, labels)
    assert single.nll_ == pytest.approx(double.nll_, abs=1e-5)
    np.testing.assert_allclose(
        single.predict_proba(logits), double.predict_proba(logits), atol=2e-3
    )


# ---- Tuning of the penalties λ (odir) and μ (l2) ----------------------------------------


def test_tuning_is_logged_seeded_and_beats_its_corners(made_up):
    logits, labels = made_up(n=600)
    one = DirichletCalibration(tuning_runs=14, seed=5).fit(logits, labels)
    two = DirichletCalibration(tuning_runs=14, seed=5).fit(logits, labels)
    assert len(one.tuning_log_) == 14
    assert all({"parameters", "score", "seconds"} == set(run) for run in one.tuning_log_)
    assert [run["score"] for run in one.tuning_log_] == [run["score"] for run in two.tuning_log_]
    np.testing.assert_array_equal(one.matrix_, two.matrix_)
    best = min(one.tuning_log_, key=lambda run: run["score"])["parameters"]
    assert (one.odir_, one.l2_) == (best["odir"], best["l2"])
    assert 1e-4 * 20 <= one.odir_ <= 1e2 * 20
    other = DirichletCalibration(tuning_runs=14, seed=6).fit(logits, labels)
    assert other.tuning_log_[0]["score"] != one.tuning_log_[0]["score"]


def test_given_penalties_are_not_tuned(made_up):
    logits, labels = made_up()
    fixed = DirichletCalibration(odir=0.5, l2=0.25).fit(logits, labels)
    assert (fixed.odir_, fixed.l2_, fixed.tuning_log_) == (0.5, 0.25, [])
    half = DirichletCalibration(odir=0.5, tuning_runs=5).fit(logits, labels)
    assert half.odir_ == 0.5
    assert all(set(run["parameters"]) == {"l2"} for run in half.tuning_log_)


def test_of_all_points_tried_the_chosen_one_is_within_1e_4_of_the_best_plain_fit(made_up):
    n = 600
    logits, labels = made_up(n=n, classes=6)
    fitted = DirichletCalibration(tuning_runs=20).fit(logits, labels)
    order = np.random.default_rng(0).permutation(n)
    held, others = order[: round(0.3 * n)], order[round(0.3 * n) :]
    x = reference.log_probabilities(logits[held])

    def plain_score(odir, l2):
        point = reference.dirichlet(logits[others], labels[others], odir, l2)
        return reference.log_loss(x @ point[:, :-1].T + point[:, -1], labels[held])

    best = min(plain_score(**run["parameters"]) for run in fitted.tuning_log_)
    assert plain_score(fitted.odir_, fitted.l2_) <= best + 1e-4


@pytest.mark.parametrize("fallback", [True, False])
def test_a_map_that_is_worse_than_temperature_scaling_on_the_hold_out_is_reported(
    made_up, fallback
):
    logits, labels = made_up(n=150, classes=30)
    method = DirichletCalibration(odir_range=(1e-4, 1e-3), tuning_runs=20, fallback=fallback)
    with pytest.warns(UserWarning, match="held-out"):
        method.fit(logits, labels)
    temperature = TemperatureScaling().fit(logits, labels).predict_proba(logits)
    same = np.allclose(method.predict_proba(logits), temperature, rtol=0, atol=1e-12)
    assert method.worse_than_temperature_ and same == method.fell_back_ == fallback
    assert len(method.tuning_log_) == 1  # smaller λ would be worse, and are not tried
    assert np.isfinite([run["score"] for run in method.tuning_log_]).all()


def test_the_path_ends_once_fits_overfit(made_up):
    method = DirichletCalibration(tuning_runs=30)
    with pytest.warns(UserWarning, match="held-out"):
        method.fit(*made_up(n=600, classes=10))
    scores = [run["score"] for run in method.tuning_log_]
    assert HOPELESS < len(scores) < 30
    assert min(scores[-HOPELESS:]) > min(scores)


def test_a_map_that_is_hardly_worse_than_temperature_scaling_is_kept(made_up):
    method = DirichletCalibration(tuning_runs=10)
    with pytest.warns(UserWarning, match="held-out"):
        method.fit(*made_up(n=600))
    assert method.worse_than_temperature_ and not method.fell_back_
    assert np.ptp(method.matrix_.diagonal()) > 0  # temperature scaling has equal slopes


def test_adam_ends_between_its_start_and_the_optimum_and_a_seed_gives_the_same_bits(made_up):
    logits, labels = made_up(n=400, classes=4)
    options = {"on": "logits", "loss": "brier", "odir": 3.0, "l2": 0.0}
    exact = DirichletCalibration(**options).fit(logits, labels)
    fits = [
        DirichletCalibration(**options, solver="adam", seed=seed).fit(logits, labels)
        for seed in (1, 1, 2)
    ]
    start = map_module.map_loss(
        logits.astype(np.float64), labels, map_module.start_point(4, 1.0), loss="brier"
    )
    assert exact.loss_ - 1e-3 < fits[0].loss_ < start
    np.testing.assert_array_equal(fits[0].matrix_, fits[1].matrix_)
    assert (fits[0].matrix_ != fits[2].matrix_).any()
    assert fits[0].n_evaluations_ <= 1000


@pytest.mark.parametrize("missing", ["odir", "l2"])
def test_adam_tunes_no_penalty(made_up, missing):
    options = {"odir": 1.0, "l2": 1.0, missing: None}
    with refuses(field="solver", fix=missing):
        DirichletCalibration(**options, solver="adam").fit(*made_up(n=60, classes=3))
