"""Accuracy, Brier score and NLL against scikit-learn and loops."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss

from metrics import (
    ClassWise,
    InputError,
    TopK,
    accuracy,
    binned_class_wise_error,
    binned_top_class_error,
    brier_score,
    calibration_interval,
    negative_log_likelihood,
    noise_floor,
    reference,
    scorecard,
)
from metrics.scores import LIKELIHOOD_FLOOR

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]


SCORES = {
    "accuracy": (accuracy, lambda p, y: accuracy_score(y, p.argmax(axis=1))),
    "brier": (brier_score, reference.brier_score),
    "nll": (negative_log_likelihood, reference.negative_log_likelihood),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 20])
@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_the_definition(name, kind, classes, forecast_of):
    p, y = forecast_of(kind, 150, classes, 1)
    score, definition = SCORES[name]
    assert score(p, y) == pytest.approx(definition(p, y), abs=1e-14)
    if name == "nll" and kind == "smooth":
        assert score(p, y) == pytest.approx(log_loss(y, p, labels=range(classes)))


def test_an_excluded_outcome_costs_the_floor_and_no_more():
    p = np.array([[1.0, 0.0], [0.25, 0.75]])
    worst = -np.log(LIKELIHOOD_FLOOR)
    assert worst == pytest.approx(27.6, abs=0.05)
    assert negative_log_likelihood(p, [1, 1]) == pytest.approx((worst - np.log(0.75)) / 2)
    assert negative_log_likelihood(p, [1, 1], floor=0.1) == pytest.approx(
        -(np.log(0.1) + np.log(0.75)) / 2
    )
    assert negative_log_likelihood(p, [0, 0]) == pytest.approx(-np.log(0.25) / 2)


@pytest.mark.parametrize("measure", [accuracy, brier_score, negative_log_likelihood])
def test_every_kind_of_input_gives_the_same_float(measure, forecast_of):
    p, y = forecast_of("dyadic", 60, 4, 4)
    expected = measure(p, y)
    assert isinstance(expected, float)
    assert measure(torch.from_numpy(p), torch.from_numpy(y)) == expected
    assert measure(p.tolist(), y.tolist()) == expected
    assert measure(p.astype(np.float16), y.astype(np.uint8)) == expected  # eighths are exact
    assert measure(np.asfortranarray(p)[::-1], y.astype(float)[::-1]) == pytest.approx(expected)


def test_one_column_is_enough_for_two_classes():
    random = np.random.default_rng(0)
    p, y = random.random(50), random.integers(2, size=50)
    both = np.stack([1 - p, p], axis=1)
    for single in (p, p[:, None]):
        assert brier_score(single, y) == brier_score(both, y)
        errors = ClassWise().calibration_errors(single, y)
        np.testing.assert_array_equal(errors, ClassWise().calibration_errors(both, y))


def test_labels_may_be_names_where_the_columns_are_named():
    names, random = ["dog", "cat", "eel"], np.random.default_rng(0)
    p, y = random.dirichlet(np.ones(3), 60), np.arange(60) % 3
    text = np.array(names)[y]
    for metric in (
        *(accuracy, brier_score, negative_log_likelihood, binned_top_class_error),
        *(binned_class_wise_error, TopK().calibration_errors, ClassWise().worst),
        lambda p, y, **names: calibration_interval(TopK(), p, y, **names),
        lambda p, y, **names: noise_floor(TopK(), p, y, 5, **names),
        lambda p, y, **names: scorecard(p, y, utilities=0, floor_repetitions=5, **names).metrics,
    ):
        plain, named = metric(p, y), metric(p, text, classes=names)
        np.testing.assert_equal(named, plain)
        assert metric(p, np.array([7, 8, 9])[y], classes=[7, 8, 9]) is not None
    with pytest.raises(InputError, match="'cat' in row 1 is none of `classes`"):
        accuracy(p, text, classes=["a", "b", "c"])
    with pytest.raises(InputError, match="2 names for 3 columns; name each once"):
        accuracy(p, text, classes=["dog", "cat"])


@pytest.mark.parametrize("names", [["cat", "dog", "eel"], None])
def test_a_frame_with_its_columns_in_another_order_is_refused(names):
    p, y = np.random.default_rng(0).dirichlet(np.ones(3), 9), np.arange(9) % 3
    columns = names or [0, 1, 2]
    frame = pd.DataFrame(p, columns=columns)
    for metric in (brier_score, lambda p, y, classes: scorecard(p, y, classes=classes).metrics):
        assert metric(frame, np.array(columns)[y], classes=names)
        with pytest.raises(InputError, match="comes first, but"):
            metric(frame[columns[::-1]], np.array(columns)[y], classes=names)
