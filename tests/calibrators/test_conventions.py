"""What holds for every calibrator: scikit-learn's conventions, array kinds, hard data, files."""

import math
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.refusals import refuses
from utility_calibration import calibrators
from utility_calibration.calibrators import (
    Calibrator,
    DirichletCalibration,
    IsotonicCalibration,
    LogitShiftPatching,
    StructuredMatrixScaling,
    TemperatureScaling,
    Uncalibrated,
    UtilityPatching,
    VectorScaling,
    Wrapped,
    from_probabilities,
)
from utility_calibration.metrics.kernels.softmax import softmax

CHEAP = {
    "DirichletCalibration": {"odir": 1.0, "l2": 0.1},
    "UtilityPatching": {"step_size": 1.0, "steps": 4, "sampled": True, "sampled_count": 9},
    "LogitShiftPatching": {"steps": 4, "sampled_count": 9},
}
"""Arguments without which a fit takes long."""
KINDS = {name: getattr(calibrators, name) for name in calibrators.__all__ if name[0].isupper()}
METHODS = {
    **{
        name: kind(**CHEAP.get(name, {}))
        for name, kind in KINDS.items()
        if issubclass(kind, Calibrator) and kind not in (Calibrator, Wrapped)
    },
    "matrix": DirichletCalibration(on="logits", odir=1.0, l2=0.1),
    "isotonic_raw": IsotonicCalibration(normalize=False),
    "isotonic_global": IsotonicCalibration(mode="global"),
    "from temperature": LogitShiftPatching("temperature", **CHEAP["LogitShiftPatching"]),
}


@pytest.fixture(params=METHODS)
def method(request):
    return clone(METHODS[request.param])


OTHERWISE = {
    "X has a column per class, and labels are class numbers or names with classes=": [
        *("check_estimators_overwrite_params", "check_estimators_fit_returns_self"),
        *("check_readonly_memmap_input", "check_sample_weights_pandas_series"),
        *("check_sample_weights_not_an_array", "check_sample_weights_shape"),
        *("check_sample_weights_not_overwritten", "check_classifier_data_not_an_array"),
        *("check_classifiers_one_label", "check_classifiers_classes", "check_classifiers_train"),
        *("check_fit2d_1feature", "check_supervised_y_2d"),
    ],
    "the message is ours, in other words than scikit-learn's": [
        *("check_n_features_in_after_fitting", "check_complex_data", "check_dtype_object"),
        *("check_estimators_empty_data_messages", "check_estimator_sparse_tag"),
        *("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
        "check_sample_weight_equivalence_on_sparse_data",  # of scikit-learn 1.6
        *("check_classifiers_regression_target", "check_fit2d_predict1d", "check_requires_y_none"),
    ],
}
"""scikit-learn's checks that a raw calibrator does not pass, by reason. `CalibratedModel` does."""


@parametrize_with_checks(
    [TemperatureScaling()],
    expected_failed_checks=lambda _: {name: why for why in OTHERWISE for name in OTHERWISE[why]},
)
def test_a_raw_calibrator_passes_scikit_learns_checks_but_for_those_that_are_listed(
    estimator, check
):
    check(estimator)


def test_probabilities_are_taken_where_they_are_announced(method, made_up, tmp_path):
    logits, labels = made_up(n=60)
    p = Uncalibrated().fit(logits, labels).predict_proba(logits)
    expected = method.fit(from_probabilities(p), labels).predict_proba(from_probabilities(p))
    announced = clone(method).set_params(inputs="probabilities")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        announced.fit(p, labels)
    # Rounding may move a score to another cell of an isotonic map's grid, where the map is steep.
    atol = 5e-5 if isinstance(method, IsotonicCalibration) else 1e-9
    np.testing.assert_allclose(announced.predict_proba(p), expected, atol=atol)
    loaded = Calibrator.load(announced.save(tmp_path / "announced.npz"))
    np.testing.assert_allclose(loaded.predict_proba(p), expected, atol=atol)
    module = announced.to_module(torch.float64)
    np.testing.assert_allclose(module(torch.from_numpy(p)).numpy(), expected, rtol=1e-9, atol=atol)
    with refuses("probabilities"):
        announced.predict_proba(logits)


def test_fitting_twice_gives_the_same(method, made_up):
    logits, labels = made_up(n=120)
    with pytest.raises(NotFittedError):
        method.predict_proba(logits)
    one = clone(method).fit(logits, labels).predict_proba(logits)
    other = made_up(n=70, classes=3, seed=9)
    again = method.fit(*other).fit(logits, labels).predict_proba(logits)
    np.testing.assert_array_equal(one, again)


def test_the_answer_has_the_kind_of_the_logits(method, made_up):
    logits, labels = made_up(n=80)
    method.fit(logits, labels)
    from_numpy = method.predict_proba(logits)
    assert isinstance(from_numpy, np.ndarray) and from_numpy.dtype == np.float64
    tensor = torch.from_numpy(logits)
    from_torch = method.predict_proba(tensor)
    assert isinstance(from_torch, torch.Tensor) and from_torch.dtype == torch.float64
    np.testing.assert_array_equal(from_numpy, from_torch.numpy())
    same = clone(method).fit(tensor, torch.from_numpy(labels)).predict_proba(logits)
    np.testing.assert_array_equal(from_numpy, same)
    predicted = method.predict(tensor)
    assert predicted.dtype == torch.int64
    np.testing.assert_array_equal(predicted, from_numpy.argmax(axis=1))
    assert method.score(logits, labels) == pytest.approx((predicted.numpy() == labels).mean())


def test_logits_of_any_layout(method, made_up):
    logits, labels = made_up(n=64)
    logits = np.round(logits)  # exact in every number type
    variants = {
        "float16": logits.astype(np.float16),
        "integers": logits.astype(np.int64),
        "strided": np.repeat(logits, 2, axis=1)[:, ::2],
        "read_only": logits.copy(),
        "list": logits.tolist(),
        "with a number added": logits + 10_000,
        "in double precision": logits.astype(float) + 100,
    }
    variants["read_only"].flags.writeable = False
    expected = clone(method).fit(logits, labels).predict_proba(logits)
    for kind, given in variants.items():
        computed = method.fit(given, labels).predict_proba(given)
        np.testing.assert_allclose(computed, expected, rtol=1e-6, atol=1e-9, err_msg=kind)


HARD = {
    "absent classes": lambda g: (g.normal(size=(50, 7)), g.integers(1, 4, 50)),
    "one class": lambda g: (g.normal(size=(50, 3)), np.full(50, 2)),
    "huge logits": lambda g: (g.choice([-1e4, 0, 1e4], size=(50, 4)), g.integers(0, 4, 50)),
    "constant": lambda g: (np.full((50, 4), 3.0), g.integers(0, 4, 50)),
    "four points": lambda g: (g.normal(size=(4, 3)), np.array([0, 1, 2, 0])),
    "more classes than points": lambda g: (g.normal(size=(20, 40)), g.integers(0, 40, 20)),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_data_give_probabilities(method, case):
    logits, labels = HARD[case](np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "labels: (all 50 are 2|class .* no calibration point)")
        fitted = method.fit(logits, labels)
        unseen = np.concatenate([logits, 1e4 * np.random.default_rng(1).normal(size=logits.shape)])
        probabilities = fitted.predict_proba(unseen)
    assert np.isfinite(probabilities).all()
    assert probabilities.min() >= 0 and probabilities.max() <= 1
    if getattr(method, "normalize", True):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    if case == "one class":
        found = fitted.to_module(torch.float64)(torch.from_numpy(unseen))
        np.testing.assert_allclose(found, probabilities, atol=1e-12)


WRONG = [
    ("inputs", Uncalibrated(inputs="odds")),
    ("mode", IsotonicCalibration(mode="both")),
    ("normalize", IsotonicCalibration(normalize="no")),  # Hydra's text
    ("tie_break", IsotonicCalibration(tie_break=-1e-9)),
    ("l2", VectorScaling(l2=-1.0)),
    ("max_iterations", VectorScaling(max_iterations=0)),
    ("off_diagonal", StructuredMatrixScaling(off_diagonal=0.0)),
    ("on", DirichletCalibration(on="odds")),
    ("odir", DirichletCalibration(odir=math.nan)),
    ("odir_range", DirichletCalibration(odir_range=(1.0, 0.5))),
    ("tuning_runs", DirichletCalibration(tuning_runs=0)),
    ("start", LogitShiftPatching(start="isotonic")),
    ("objective", LogitShiftPatching(objective="u_comb")),
    ("shrinkage", LogitShiftPatching(shrinkage=0)),
    ("start", UtilityPatching(start="vector")),
    ("line_search", UtilityPatching(line_search="exact")),
    ("line_search", UtilityPatching(line_search={"c1": 0.1})),
    ("line_search.decrease", UtilityPatching(line_search={"decrease": 1.0})),
    ("line_search.trials", UtilityPatching(line_search={"trials": 0})),
    ("first_trial", UtilityPatching(line_search={"first_trial": "1"})),
    ("step_size", UtilityPatching(step_size=0.0)),
    ("holdout", UtilityPatching(holdout=1.0)),
    ("steps", UtilityPatching(steps=-1)),
    ("tolerance", UtilityPatching(tolerance=-0.1)),
]


@pytest.mark.parametrize(("field", "method"), WRONG)
def test_an_argument_out_of_range_is_named(field, method):
    with refuses(field):
        method.fit(np.eye(3), np.arange(3))


@pytest.mark.parametrize("n", [1, 2])
def test_points_of_one_class_teach_nothing_and_fit_says_so(method, made_up, n):
    """A single point is one of these cases: it was passed over without a word."""
    logits, _ = made_up(n=n)
    weighted = {"sample_weight": np.ones(n)} if method.takes_weights else {}
    for given in ({}, weighted):
        if not method.is_learned:
            method.fit(logits, np.full(n, 2), **given)  # a warning is an error in the tests
            continue
        with pytest.warns(UserWarning, match="labels: .* nothing can be learned"):
            method.fit(logits, np.full(n, 2), **given)
        np.testing.assert_array_equal(method.predict_proba(logits), softmax(logits))


def test_rows_that_the_fit_does_not_know_are_named(made_up):
    logits, labels = made_up(n=40)
    for wrong, number in (([0.0, 1.0], ""), (logits * np.nan, "40")):
        with refuses("logits", number=number):
            TemperatureScaling().fit(wrong, labels)
    method = TemperatureScaling().fit(logits, labels)
    for wrong, fix in ((np.zeros((2, 3)), ""), (np.full(5, 0.3), "X.reshape(1, -1)")):
        with refuses("logits", fix=fix, number="5 classes"):
            method.predict_proba(wrong)


def test_one_column_is_enough_for_two_classes():
    random = np.random.default_rng(0)
    log_odds = random.normal(size=200)
    y = (random.random(200) < 1 / (1 + np.exp(-log_odds))).astype(int)
    both = np.stack([0 * log_odds, log_odds], axis=1)
    expected = TemperatureScaling().fit(both, y).predict_proba(both)
    for scores in (log_odds, log_odds[:, None]):
        fitted = TemperatureScaling().fit(scores, y)
        np.testing.assert_array_equal(fitted.predict_proba(scores), expected)
    with pytest.warns(UserWarning, match="probabilities"):
        TemperatureScaling().fit(random.random(200), y)


def test_files_keep_everything_but_the_tuning_log(method, made_up, tmp_path):
    logits, labels = made_up(n=100)
    method.fit(logits, labels)
    path = method.save(tmp_path / "deep" / "method.npz")
    for load in (type(method).load, Calibrator.load):
        loaded = load(path)
        assert type(loaded) is type(method)
        for name, value in method.get_params().items():
            assert loaded.get_params()[name] == (list(value) if isinstance(value, tuple) else value)
        assert loaded.tuning_log_ == []
        np.testing.assert_array_equal(loaded.predict_proba(logits), method.predict_proba(logits))
        for name, value in vars(method).items():
            if name.endswith("_") and name != "tuning_log_":
                np.testing.assert_array_equal(getattr(loaded, name), value)
    again = method.save(tmp_path / "again.npz")
    assert again.read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.npz", "deep"]
    revived = pickle.loads(pickle.dumps(method))
    np.testing.assert_array_equal(revived.predict_proba(logits), method.predict_proba(logits))
