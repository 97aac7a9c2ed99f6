"""Calibrators of other packages: any object with `fit` and `predict_proba`, and mappings of one."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from tests.refusals import check_line, refuses
from utility_calibration.calibrators import Calibrator, Wrapped, wrapped
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.errors import MissingResource

RECIPE = {"_target_": "sklearn.linear_model.LogisticRegression", "C": 0.5}
NESTED = {
    "_target_": "sklearn.multiclass.OneVsRestClassifier",
    "estimator": RECIPE,
}


@pytest.fixture
def points(made_up):
    logits, labels = made_up(n=300)
    return logits[:200], labels[:200], logits[200:]


def softmax(z):
    p = np.exp(z.astype(float) - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("estimator", [LogisticRegression(C=0.5), RECIPE, NESTED], ids=str)
def test_the_object_gets_probabilities_and_its_answer_comes_back(estimator, points):
    logits, labels, new = points
    own = wrapped.made(estimator) if isinstance(estimator, dict) else clone(estimator)
    expected = own.fit(softmax(logits), labels).predict_proba(softmax(new))
    fitted = Wrapped(estimator).fit(logits, labels)
    np.testing.assert_allclose(fitted.predict_proba(new), expected, atol=1e-9)
    again = clone(fitted).fit(logits, labels)
    np.testing.assert_array_equal(again.predict_proba(new), fitted.predict_proba(new))
    assert not hasattr(estimator, "coef_")  # a copy is fitted


def test_a_persons_class_needs_two_methods_and_no_base_class(points):
    class Shrunk:
        def fit(self, p, y):
            assert p.dtype == np.float64 and y.dtype == np.int64
            self.shares = np.bincount(y, minlength=p.shape[1]) / len(y)

        def predict_proba(self, p):
            return (p + self.shares).astype(np.float32)  # rows sum to 2

    logits, labels, new = points
    expected = (softmax(new) + np.bincount(labels, minlength=5) / 200) / 2
    answer = Wrapped(Shrunk()).fit(logits, labels).predict_proba(new)
    np.testing.assert_allclose(answer, expected, atol=1e-6)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-12)


def test_a_file_has_the_cached_answers_and_neither_object_nor_recipe(points, tmp_path):
    logits, labels, new = points
    fitted = Wrapped(RECIPE).fit(logits, labels)
    fitted.cache_predictions(new)
    path = fitted.save(tmp_path / "one.npz")
    assert all(array.dtype != object for array in read_arrays(path, fix="").values())
    loaded = Calibrator.load(path)
    assert isinstance(loaded, Wrapped) and loaded.estimator is None
    np.testing.assert_array_equal(loaded.predict_proba(new), fitted.predict_proba(new))
    with refuses("estimator", fix="fit it again"):
        loaded.predict_proba(new[1:])


def test_a_target_in_a_file_is_never_called(points, tmp_path):
    path = Wrapped(RECIPE).fit(*points[:2]).save(tmp_path / "one.npz")
    with np.load(path) as archive:
        content = dict(archive)
    content["params"] = np.array('{"estimator": {"_target_": "sys.exit"}, "inputs": "logits"}')
    np.savez(path, **content)
    with refuses("estimator"):
        Calibrator.load(path).predict_proba(points[2])


@pytest.mark.parametrize(
    "estimator",
    [
        3,
        IsotonicRegression(),
        {"C": 1.0},
        {**RECIPE, "depth": 3},
        {"_target_": "sklearn.linear_model.Absent"},
        LogisticRegression(C=-1.0),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_one_line(estimator, points):
    with refuses("estimator"):
        Wrapped(estimator).fit(*points[:2])


def test_export_and_weights_are_refused(points):
    fitted = Wrapped(LogisticRegression()).fit(*points[:2])
    with refuses("estimator"):
        fitted.to_module()
    with refuses("sample_weight"):
        fitted.fit(*points[:2], np.ones(200))


def test_any_absent_package_is_one_line_with_the_command(points, monkeypatch):
    for arguments, command in (
        (("not_there.inside",), "pip install not_there"),
        (("not_there", wrapped.INSTALL), "requirements-peers.txt"),
    ):
        with pytest.raises(MissingResource) as caught:
            require(*arguments)
        check_line(str(caught.value), "not_there", command)
    monkeypatch.setitem(sys.modules, "sklearn.multiclass", None)
    with pytest.raises(MissingResource):
        Wrapped({"_target_": "not_there.Class"}).fit(*points[:2])
