"""A classifier with its calibrator: scikit-learn's conventions, labels of any kind, no leakage."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.refusals import refuses
from utility_calibration.calibrators import CalibratedModel, TemperatureScaling, VectorScaling
from utility_calibration.calibrators.inputs import from_probabilities


def problem(classes: int, n: int = 1200, seed: int = 0):
    return make_classification(
        n, 12, n_informative=8, n_classes=classes, class_sep=0.8, flip_y=0.1, random_state=seed
    )


@parametrize_with_checks([CalibratedModel(LogisticRegression(), cv=3)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "classifier",
    [LogisticRegression(), RandomForestClassifier(20, random_state=0)],
    ids=lambda classifier: type(classifier).__name__,
)
@pytest.mark.parametrize("classes", [2, 4])
def test_decision_functions_and_probabilities_become_probabilities(classifier, classes):
    x, y = problem(classes)
    names = np.array(["fox", "hen", "eel", "ant"])[y]
    model = CalibratedModel(classifier).fit(x[:800], names[:800])
    probabilities = model.predict_proba(x[800:])
    assert model.classes_.tolist() == sorted(set(names))
    assert probabilities.shape == (400, classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (model.predict(x[800:]) == names[800:]).mean() > 1.5 / classes


def test_it_hands_logits_to_a_calibrator_of_probabilities():
    x, y = problem(3, 300)
    plain = CalibratedModel(GaussianNB()).fit(x, y).predict_proba(x)
    model = CalibratedModel(GaussianNB(), TemperatureScaling(inputs="probabilities"))
    np.testing.assert_array_equal(model.fit(x, y).predict_proba(x), plain)


@pytest.mark.parametrize(
    ("classifier", "logits_of"),
    [
        (LogisticRegression(), lambda fitted, x: fitted.decision_function(x)),
        (GaussianNB(), lambda fitted, x: from_probabilities(fitted.predict_proba(x))),
    ],
)
def test_the_same_calibrator_comes_out_as_by_hand(classifier, logits_of):
    x, y = problem(3)
    folds = KFold(4)
    logits = np.empty((1200, 3))
    for train, held in folds.split(x):
        logits[held] = logits_of(classifier.fit(x[train], y[train]), x[held])
    by_hand = TemperatureScaling().fit(logits, y)
    model = CalibratedModel(classifier, cv=folds).fit(x, y)
    assert model.calibrator_.temperature_ == by_hand.temperature_


RARE = np.arange(1200) % 2
RARE[:3] = 2
PAIRS = SVC(decision_function_shape="ovo")


X3, Y3 = problem(3)
FEW = np.flatnonzero((Y3 != 1) | (np.cumsum(Y3 == 1) <= 3))
ORDER = np.argsort(Y3)
BY_FOLD = {"cv": KFold(3), "ensemble": True}
LOGISTIC, NAIVE, ONES = LogisticRegression(), GaussianNB(), np.ones(1200)
BAD = [
    ("y", "", CalibratedModel(LOGISTIC), (X3, RARE)),
    ("y", "", CalibratedModel(NAIVE), (X3[FEW], Y3[FEW])),
    ("y", "2 classes", CalibratedModel(LOGISTIC), (X3, np.zeros(1200))),
    ("classifier", "", CalibratedModel(StandardScaler()), (X3, Y3)),
    ("classifier", "ovr", CalibratedModel(PAIRS), problem(4)),
    ("classifier", "ovr", CalibratedModel(PAIRS), (X3, Y3)),
    ("classifier", "second", CalibratedModel(TemperatureScaling(), NAIVE), (X3, Y3)),
    ("calibrator", "TemperatureScaling()", CalibratedModel(NAIVE, NAIVE), (X3, Y3)),
    ("cv", "FrozenEstimator", CalibratedModel(NAIVE, cv="prefit"), (X3, Y3)),
    ("ensemble", "True or False", CalibratedModel(NAIVE, ensemble="auto"), (X3, Y3)),
    ("cv", "other folds", CalibratedModel(NAIVE, **BY_FOLD), (X3[ORDER], Y3[ORDER])),
    ("sample_weight", "", CalibratedModel(KNeighborsClassifier()), (X3, Y3, ONES)),
    ("sample_weight", "not negative", CalibratedModel(NAIVE), (X3, Y3, -ONES)),
]


@pytest.mark.parametrize(("field", "fix", "model", "given"), BAD)
def test_what_cannot_be_fitted_is_told_with_the_fix(field, fix, model, given):
    with refuses(field, fix=fix):
        model.fit(*given)


def weighted_problem():
    """Features, labels, whole weights and two folds, and the same with every point repeated."""
    x, y = problem(3, 300)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    fold = np.arange(300) % 2
    copies = np.repeat(np.arange(300), weights)
    splits = [
        [(np.flatnonzero(of != k), np.flatnonzero(of == k)) for k in (0, 1)]
        for of in (fold, fold[copies])
    ]
    return (x, y, weights, splits[0]), (x[copies], y[copies], splits[1])


def test_a_weight_counts_as_that_many_points_in_the_classifier_and_in_the_calibrator():
    (x, y, weights, splits), (many_x, many_y, many_splits) = weighted_problem()
    one = CalibratedModel(GaussianNB(), cv=splits).fit(x, y, sample_weight=weights)
    many = CalibratedModel(GaussianNB(), cv=many_splits).fit(many_x, many_y)
    np.testing.assert_allclose(one.calibrator_.temperature_, many.calibrator_.temperature_)
    np.testing.assert_allclose(one.predict_proba(x), many.predict_proba(x), atol=1e-9)
    plain = CalibratedModel(GaussianNB(), cv=splits).fit(x, y)
    assert abs(plain.predict_proba(x) - one.predict_proba(x)).max() > 0.01


@pytest.mark.parametrize("calibrator", [None, VectorScaling()])
def test_an_ensemble_is_the_mean_of_its_folds_as_by_hand(calibrator):
    x, y = problem(3, 600)
    folds, weights = KFold(3), np.random.default_rng(0).integers(0, 3, 600)
    if calibrator is None:
        weights = None
    options = {"cv": folds, "ensemble": True}
    model = CalibratedModel(LogisticRegression(), calibrator, **options)
    model.fit(x, y, weights)
    expected = []
    for train, held in folds.split(x):
        part = [None if weights is None else weights[rows] for rows in (train, held)]
        classifier = LogisticRegression().fit(x[train], y[train], part[0])
        fitted = clone(calibrator or TemperatureScaling())
        fitted.fit(classifier.decision_function(x[held]), y[held], part[1])
        expected.append(fitted.predict_proba(classifier.decision_function(x)))
    np.testing.assert_allclose(model.predict_proba(x), np.mean(expected, axis=0), atol=1e-12)
    assert len(model.members_) == 3


@pytest.mark.parametrize("ensemble", [False, True])
def test_a_classifier_that_is_fitted_already_is_not_fitted_again(ensemble):
    x, y = problem(3, 900)
    names = np.array(["fox", "hen", "eel"])
    frozen = FrozenEstimator(LogisticRegression().fit(x[:600], names[y[:600]]))
    model = CalibratedModel(frozen, ensemble=ensemble).fit(x[600:], names[y[600:]])
    order = np.argsort(names)
    assert model.classes_.tolist() == names[order].tolist()
    scores = frozen.decision_function(x[600:])
    plain = TemperatureScaling().fit(scores, names[y[600:]], classes=frozen.classes_)
    if not ensemble:
        np.testing.assert_allclose(model.predict_proba(x[600:]), plain.predict_proba(scores))
