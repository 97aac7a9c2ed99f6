"""A classifier with its calibrator: scikit-learn's conventions, labels of any kind, no leakage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrators import CalibratedModel, TemperatureScaling, VectorScaling
from metrics import TopK, negative_log_likelihood
from metrics.validation import InputError


def problem(classes: int, n: int = 1200, seed: int = 0):
    return make_classification(
        n, 12, n_informative=8, n_classes=classes, class_sep=0.8, flip_y=0.1, random_state=seed
    )


@parametrize_with_checks([CalibratedModel(LogisticRegression(), cv=3)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "classifier",
    [LogisticRegression(), SVC(), RandomForestClassifier(20, random_state=0)],
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


def test_out_of_fold_scores_repair_a_classifier_that_knows_its_training_points_by_heart():
    x, y = problem(3, 3000)
    tree = DecisionTreeClassifier(random_state=0)
    raw = tree.fit(x[:2000], y[:2000]).predict_proba(x[2000:])
    calibrated = CalibratedModel(tree).fit(x[:2000], y[:2000]).predict_proba(x[2000:])
    assert negative_log_likelihood(calibrated, y[2000:]) < negative_log_likelihood(raw, y[2000:])
    worst = [TopK().calibration_errors(p, y[2000:]).max() for p in (calibrated, raw)]
    assert worst[0] < worst[1] / 2


def test_it_works_in_pipelines_searches_and_cross_validation():
    x, y = problem(3)
    model = make_pipeline(StandardScaler(), CalibratedModel(LogisticRegression(), VectorScaling()))
    search = GridSearchCV(model, {"calibratedmodel__classifier__C": [0.01, 1.0]}, cv=3)
    assert search.fit(x, y).predict_proba(x).shape == (1200, 3)
    scores = cross_validate(model, x, y, cv=3, scoring="neg_log_loss")["test_score"]
    assert np.isfinite(scores).all()


def test_column_names_are_kept_and_other_ones_refused():
    x, y = problem(3)
    table = pd.DataFrame(x, columns=[f"f{k}" for k in range(12)])
    model = CalibratedModel(LogisticRegression(max_iter=500)).fit(table, y)
    assert model.feature_names_in_.tolist() == list(table.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(table[list(table.columns[::-1])])


def test_the_same_calibrator_comes_out_as_by_hand():
    x, y = problem(3)
    folds = KFold(4)
    logits = np.empty((1200, 3))
    for train, held in folds.split(x):
        fitted = LogisticRegression().fit(x[train], y[train])
        logits[held] = fitted.decision_function(x[held])
    by_hand = TemperatureScaling().fit(logits, y)
    model = CalibratedModel(LogisticRegression(), cv=folds).fit(x, y)
    assert model.calibrator_.temperature_ == by_hand.temperature_


def test_bad_problems_are_told_in_one_line():
    x, y = problem(3)
    with pytest.raises(InputError, match="class 2 has 3 points, fewer than the 5 folds"):
        rare = np.concatenate([np.full(3, 2), y[3:].clip(0, 1)])
        CalibratedModel(LogisticRegression()).fit(x, rare)
    with pytest.raises(InputError, match="one class"):
        CalibratedModel(LogisticRegression()).fit(x, np.zeros(1200))
    with pytest.raises(InputError, match="neither decision_function nor predict_proba"):
        CalibratedModel(StandardScaler()).fit(x, y)
    assert clone(CalibratedModel(KNeighborsClassifier(3))).classifier.n_neighbors == 3
