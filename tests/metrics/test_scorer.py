"""The scorer gives scikit-learn's model selection our numbers, whatever kind the labels are."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from tests.refusals import refuses
from utility_calibration.metrics import TopK, brier_score, calibration_scorer

X, CODES = load_iris(return_X_y=True)
FOLDS = StratifiedKFold(3)


@pytest.mark.parametrize("names", [[0, 1, 2], ["z", "a", "m"], [7, 3, 5], [0.0, 1, 2], [7.0, 3, 5]])
def test_scores_are_minus_the_largest_error_by_the_estimators_classes(names):
    y = np.array(names)[CODES]
    scores = cross_val_score(GaussianNB(), X, y, cv=FOLDS, scoring=calibration_scorer(TopK()))
    for score, (train, test) in zip(scores, FOLDS.split(X, y), strict=True):
        model = GaussianNB().fit(X[train], y[train])
        codes = np.searchsorted(model.classes_, y[test])
        errors = TopK().calibration_errors(model.predict_proba(X[test]), codes)
        assert score == -errors.max()


def test_a_search_takes_it_and_weights_count():
    scorer = calibration_scorer(utility=TopK())
    grid = {"var_smoothing": [1e-9, 1.0]}
    found = GridSearchCV(GaussianNB(), grid, scoring=scorer, cv=FOLDS).fit(X, CODES)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    model = GaussianNB().fit(X, CODES)
    doubled = scorer(model, X[[0, *range(150)]], CODES[[0, *range(150)]])
    weighted = scorer(model, X, CODES, sample_weight=[2, *[1] * 149])
    assert weighted == pytest.approx(doubled, abs=1e-12)


def test_a_metric_in_make_scorer_names_the_scorer():
    scorer = make_scorer(brier_score, response_method="predict_proba")
    with refuses(fix="calibration_scorer"):
        scorer(GaussianNB().fit(X, CODES), X, CODES)
