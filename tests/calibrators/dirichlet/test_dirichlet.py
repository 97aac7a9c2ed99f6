"""Dirichlet calibration: its penalised optimum, its floor at temperature scaling, its tuning."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import calibrators.dirichlet.curvature as curvature_module
import calibrators.dirichlet.linear_map as map_module
import metrics.kernels.softmax as softmax_module
from calibrators import DirichletCalibration, TemperatureScaling
from calibrators.dirichlet.curvature import ClassCurvature
from calibrators.dirichlet.linear_map import map_loss, penalty_weights
from calibrators.reference import log_probabilities
from calibrators.temperature import fit_temperature
from metrics.validation import InputError


def objective_by_definition(inputs, labels, matrix, intercept, odir, l2):
    """The docstring's formula, ridge left out."""
    classes = inputs.shape[1]
    log_p = scipy.special.log_softmax(inputs @ matrix.T + intercept, axis=1)
    off = matrix[~np.eye(classes, dtype=bool)]
    nll = -log_p[np.arange(len(labels)), labels].mean()
    return nll + odir * (off**2).mean() + l2 * (intercept**2).mean()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_seed_fits_the_same_bits_on_any_number_of_threads(made_up):
    logits, labels = made_up(n=600, classes=200)
    before, fits = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            fits.append(
                DirichletCalibration(odir=4e3, l2=10.0, max_iterations=4).fit(logits, labels)
            )
    finally:
        torch.set_num_threads(before)
    for other in fits[1:]:
        np.testing.assert_array_equal(other.matrix_, fits[0].matrix_)
        np.testing.assert_array_equal(other.intercept_, fits[0].intercept_)


@pytest.mark.parametrize("on", ["log_probabilities", "logits"])
def test_it_minimises_the_stated_formula(made_up, on):
    logits, labels = made_up(n=120, classes=3)
    fitted = DirichletCalibration(on=on, odir=0.3, l2=0.2).fit(logits, labels)
    inputs = log_probabilities(logits) if on == "log_probabilities" else logits.astype(np.float64)

    def objective(flat):
        return objective_by_definition(
            inputs, labels, flat[:9].reshape(3, 3), flat[9:], odir=0.3, l2=0.2
        )

    start = np.concatenate([fitted.matrix_.ravel(), fitted.intercept_])
    reference = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
    assert objective(start) <= reference.fun + 1e-8
    expected = scipy.special.softmax(inputs @ fitted.matrix_.T + fitted.intercept_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, rtol=1e-10)


@settings(deadline=None, max_examples=20)
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
    generator = np.random.default_rng(seed)
    logits = unit * generator.normal(size=(n, classes))
    labels = generator.integers(0, classes, n)
    fitted = DirichletCalibration(on=on, odir=odir, l2=l2).fit(logits, labels)
    temperature = TemperatureScaling().fit(logits, labels)
    assert fitted.nll_ <= temperature.nll_
    p = fitted.predict_proba(logits)[np.arange(n), labels]
    with np.errstate(divide="ignore"):
        assert fitted.nll_ == pytest.approx(-np.log(p).mean(), rel=1e-6, abs=1e-9)


def test_for_two_classes_it_is_logistic_regression_on_both_log_probabilities():
    """Beta calibration (Kull et al. 2017): two slopes. A map of centred ln p has only one."""
    generator = np.random.default_rng(0)
    logits = np.stack([2.5 * generator.normal(size=5000), np.zeros(5000)], axis=1)
    x = log_probabilities(logits)
    labels = (generator.random(5000) > scipy.special.expit(2 * x[:, 0] - 0.3 * x[:, 1])).astype(int)
    fitted = DirichletCalibration(odir=0.0, l2=0.0).fit(logits, labels)
    logistic = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, labels)
    best = log_loss(labels, logistic.predict_proba(x))
    assert fitted.nll_ == pytest.approx(best, abs=1e-8)
    one_slope = DirichletCalibration(on="logits", odir=0.0, l2=0.0).fit(
        logits - logits.mean(axis=1, keepdims=True), labels
    )
    assert one_slope.nll_ > best + 0.01


def test_a_worse_map_is_replaced_by_temperature_scaling(made_up):
    logits, labels = (torch.from_numpy(part) for part in made_up())
    calibrator = DirichletCalibration()
    found = fit_temperature(logits, labels)
    bad = torch.full((5, 6), 3.0, dtype=torch.float64)
    calibrator._keep(logits, labels, bad, found)
    assert calibrator.fell_back_
    assert calibrator.nll_ == found.nll
    np.testing.assert_array_equal(calibrator.matrix_, found.beta * np.eye(5))
    np.testing.assert_array_equal(calibrator.intercept_, 0)


def test_inputs_with_a_large_common_offset_do_not_collapse(made_up):
    logits, labels = made_up(n=2000)
    plain = DirichletCalibration(odir=1.0, l2=1.0).fit(logits.astype(float), labels)
    moved = DirichletCalibration(odir=1.0, l2=1.0).fit(logits.astype(float) + 1e3, labels)
    np.testing.assert_allclose(moved.matrix_, plain.matrix_, atol=1e-6)
    raw = DirichletCalibration(on="logits", odir=1.0, l2=1.0)
    raw.fit(logits.astype(float) + 50, labels)
    assert raw.nll_ <= plain.nll_ + 0.01


def test_real_logits_beat_temperature_scaling_on_unseen_points(real_split):
    (logits, labels), (unseen, truth) = real_split("cifar10_resnet56")
    fitted = DirichletCalibration(tuning_runs=20).fit(logits, labels)
    temperature = TemperatureScaling().fit(logits, labels)
    rows = np.arange(len(truth))
    ours, theirs = (
        -np.log(method.predict_proba(unseen)[rows, truth]).mean()
        for method in (fitted, temperature)
    )
    assert ours < theirs
    assert fitted.score(unseen, truth) > 0.93


def test_a_hundred_classes_converge_in_few_passes(real_split):
    (logits, labels), _ = real_split("cifar100_resnet56")
    fitted = DirichletCalibration(odir=1000.0, l2=1.0).fit(logits, labels)
    assert fitted.n_evaluations_ <= 60
    assert fitted.nll_ < fitted.temperature_nll_ - 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_thousand_classes_stay_well_conditioned(made_up, monkeypatch):
    """Two steps in float32, as at the size of ImageNet, where ln p has a large mean."""
    logits, labels = made_up(n=200, classes=1000)
    monkeypatch.setattr(map_module, "DOUBLE_WORK", 0)
    monkeypatch.setattr(curvature_module, "TOP_ROWS", 2)  # 64 would take minutes
    fitted = DirichletCalibration(odir=1e6, l2=1e3, max_iterations=2).fit(logits, labels)
    assert not fitted.fell_back_
    assert np.isfinite(fitted.loss_)
    assert fitted.loss_ < fitted.temperature_loss_ - 0.1


def test_float32_products_give_the_same_map(made_up, monkeypatch):
    logits, labels = made_up(n=1500, classes=8)
    double = DirichletCalibration(odir=5.0, l2=1.0).fit(logits, labels)
    monkeypatch.setattr(map_module, "DOUBLE_WORK", 0)
    single = DirichletCalibration(odir=5.0, l2=1.0).fit(logits, labels)
    assert single.nll_ == pytest.approx(double.nll_, abs=1e-5)
    np.testing.assert_allclose(
        single.predict_proba(logits), double.predict_proba(logits), atol=2e-3
    )


def test_blocks_and_the_torch_twin_change_nothing(made_up, monkeypatch):
    logits, labels = (torch.from_numpy(part) for part in made_up())
    point = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    one, two = torch.empty_like(point), torch.empty_like(point)
    whole = map_loss(logits.double(), labels, point, one)
    monkeypatch.setattr(map_module, "BLOCK", 35)
    monkeypatch.setattr(softmax_module, "has_kernels", lambda tensor: False)
    assert map_loss(logits.double(), labels, point, two) == pytest.approx(whole, rel=1e-13)
    torch.testing.assert_close(one, two, rtol=1e-11, atol=1e-14)


def test_the_gradient_is_the_derivative(made_up):
    logits, labels = (torch.from_numpy(part) for part in made_up(n=40))
    point = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    mapped = logits.double() @ point[:, :5].T + point[:, 5]
    loss = torch.nn.functional.cross_entropy(mapped, labels)
    loss.backward()
    gradient = torch.empty(5, 6, dtype=torch.float64)
    value = map_loss(logits.double(), labels, point.detach(), gradient)
    assert value == pytest.approx(loss.item(), rel=1e-13)
    torch.testing.assert_close(gradient, point.grad, rtol=1e-10, atol=1e-14)


def test_penalties_weigh_the_mean_squares():
    weights = penalty_weights(4, odir=3.0, l2=5.0, device=torch.device("cpu"))
    point = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    off = point[:, :4][~torch.eye(4, dtype=torch.bool)]
    expected = 3 * (off**2).mean() + 5 * (point[:, 4] ** 2).mean()
    torch.testing.assert_close((weights * point**2).sum(), expected)


def test_the_preconditioner_inverts_the_class_blocks_when_all_rows_are_kept(made_up, monkeypatch):
    logits = torch.from_numpy(made_up(n=40)[0]).double()
    monkeypatch.setattr(curvature_module, "TOP_ROWS", 40)
    penalty = torch.full((5, 6), 0.1, dtype=torch.float64)
    solve = ClassCurvature.at(logits, beta=0.7).preconditioner(penalty)
    p = torch.softmax(0.7 * logits, dim=1)
    extended = torch.cat([logits, torch.ones(40, 1, dtype=torch.float64)], dim=1)
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(2, 5, 6, dtype=torch.float64, generator=generator)
    for j in range(5):
        v = p[:, j] * (1 - p[:, j])
        block = (extended * v[:, None]).T @ extended / 40 + 0.1 * torch.eye(6, dtype=torch.float64)
        expected = torch.linalg.solve(block, gradients[:, j].T).T
        torch.testing.assert_close(solve(gradients)[:, j], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": "probabilities"}, "choose log_probabilities or logits"),
        ({"l2": -1.0}, "l2: -1.0"),
        ({"odir": float("nan")}, "odir: nan"),
        ({"odir_range": (1.0, 0.5)}, "odir_range"),
        ({"tuning_runs": 0}, "tuning_runs: 0"),
        ({"holdout": 0.0}, "hold-out"),
    ],
)
def test_bad_arguments_are_named(made_up, arguments, message):
    with pytest.raises(InputError, match=message):
        DirichletCalibration(**arguments).fit(*made_up())


def test_an_early_stop_is_reported(made_up):
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        DirichletCalibration(odir=0.1, l2=0.1, max_iterations=1).fit(*made_up())


def test_it_minimises_the_brier_score_with_the_same_penalties(made_up):
    logits, labels = made_up(n=120, classes=3)
    fitted = DirichletCalibration(odir=0.3, l2=0.2, loss="brier").fit(logits, labels)
    inputs, truth = log_probabilities(logits), np.eye(3)[labels]

    def objective(flat):
        matrix, intercept = flat[:9].reshape(3, 3), flat[9:]
        p = scipy.special.softmax(inputs @ matrix.T + intercept, axis=1)
        off = matrix[~np.eye(3, dtype=bool)]
        brier = ((p - truth) ** 2).sum(axis=1).mean()
        return brier + 0.3 * (off**2).mean() + 0.2 * (intercept**2).mean()

    start = np.concatenate([fitted.matrix_.ravel(), fitted.intercept_])
    for begin in (start, np.concatenate([np.eye(3).ravel(), np.zeros(3)])):
        reference = scipy.optimize.minimize(objective, begin, method="BFGS", options={"gtol": 1e-9})
        assert objective(start) <= reference.fun + 1e-8
    p = fitted.predict_proba(logits)
    assert fitted.loss_ == pytest.approx(((p - truth) ** 2).sum(axis=1).mean(), rel=1e-10)
    assert fitted.temperature_loss_ == TemperatureScaling(loss="brier").fit(logits, labels).loss_


def test_the_brier_scores_gradient_is_the_derivative(made_up):
    logits, labels = (torch.from_numpy(part) for part in made_up(n=40))
    point = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    p = torch.softmax(logits.double() @ point[:, :5].T + point[:, 5], dim=1)
    (p - torch.nn.functional.one_hot(labels, 5)).square().sum(dim=1).mean().backward()
    gradient = torch.empty(5, 6, dtype=torch.float64)
    map_loss(logits.double(), labels, point.detach(), gradient, loss="brier")
    torch.testing.assert_close(gradient, point.grad, rtol=1e-9, atol=1e-14)


@settings(deadline=None, max_examples=15)
@given(
    n=st.integers(4, 80),
    classes=st.integers(2, 5),
    unit=st.sampled_from([1e-3, 1.0, 30.0]),
    odir=st.floats(0, 1e3),
    seed=st.integers(0, 10**6),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_its_brier_score_never_ends_above_temperature_scalings(n, classes, unit, odir, seed):
    generator = np.random.default_rng(seed)
    logits = unit * generator.normal(size=(n, classes))
    labels = generator.integers(0, classes, n)
    fitted = DirichletCalibration(odir=odir, l2=0.0, loss="brier").fit(logits, labels)
    assert fitted.loss_ <= TemperatureScaling(loss="brier").fit(logits, labels).loss_
