"""A single column that is the confidence in the predicted class: read with the predictions only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import own_of, read, written
from tests.refusals import refuses
from utility_calibration.calibrators import Calibrator, Uncalibrated
from utility_calibration.pipeline.own.applying.deployed import unlabelled
from utility_calibration.pipeline.own.words.file_options import FileOptions

rng = np.random.default_rng(0)
P1 = rng.random(90)
Y = (rng.random(90) < P1).astype(int)
OWN = np.where(Y, P1, 1 - P1)
WORDS = np.array(["sick", "well"])
CONFIDENCE, PREDICTED = np.maximum(P1, 1 - P1), (P1 > 0.5).astype(int)
TABLE = pd.DataFrame({"score": CONFIDENCE, "pred": PREDICTED, "label": Y})
ARRAYS = {"probabilities": CONFIDENCE, "decided": PREDICTED, "labels": Y}
RARE = pd.DataFrame({"score": np.where(Y, 0.6, 0.9), "pred": 1 - Y, "label": Y})
"""Where the confidence is larger at the points of the first class."""
PERCENT = pd.DataFrame({"confidence": 100 * RARE["score"], "pred": 1 - Y, "label": Y})
NAMED = TABLE.assign(label=WORDS[Y], pred=WORDS[PREDICTED])


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (TABLE, {"classes": "score", "predictions": "pred"}),
        (TABLE.rename(columns={"pred": "x"}), {"classes": "score", "predictions": "x"}),
        (TABLE.assign(pred=PREDICTED * 1.0), {"probabilities": "score", "predictions": "pred"}),
        (NAMED, {"classes": "score", "predictions": "pred"}),
        (TABLE.rename(columns={"score": "confidence"}), {"predictions": "pred"}),
        (TABLE.rename(columns={"score": "Model conf"}), {"predictions": "pred"}),
        (ARRAYS, {"predictions": "decided"}),
        ({**ARRAYS, "probabilities": CONFIDENCE[:, None]}, {"predictions": "decided"}),
    ],
)
def test_with_the_predictions_it_is_the_probability_of_either_class(tmp_path, content, options):
    np.testing.assert_allclose(own_of(read(tmp_path / "a.csv", content, **options))[0], OWN, 1e-4)


@pytest.mark.parametrize(
    ("content", "options", "fix"),
    [
        (TABLE, {"classes": "score"}, "--predictions pred"),
        (NAMED, {"classes": "score"}, "--predictions pred"),
        (NAMED.rename(columns={"score": "confidence"}), {}, "--predictions pred"),
        (RARE, {}, "--classes score"),
        (TABLE.drop(columns="pred"), {}, "--predictions NAME"),
        (ARRAYS, {}, "--predictions NAME"),
        (TABLE.assign(score=P1), {"classes": "score", "predictions": "pred"}, "leave out"),
        (TABLE.assign(score=100 * CONFIDENCE), {"classes": "score", "predictions": "pred"}, "100"),
        (PERCENT, {"predictions": "pred"}, "100"),
        (TABLE.assign(pred=Y + 1), {"classes": "score", "predictions": "pred"}, "other columns"),
    ],
)
def test_without_them_it_is_refused(tmp_path, content, options, fix):
    with refuses(fix=fix):
        read(tmp_path / "a.csv", content, **options)


def test_a_column_that_names_its_class_may_stay_above_one_half(tmp_path):
    table = pd.DataFrame({"p_1": CONFIDENCE, "label": Y})
    expected = np.where(Y, CONFIDENCE, 1 - CONFIDENCE)
    np.testing.assert_allclose(own_of(read(tmp_path / "a.csv", table))[0], expected, 1e-4)


def test_a_saved_calibrator_takes_the_same_predictions(tmp_path):
    calibrator = Uncalibrated().fit(np.log(np.c_[1 - P1, P1]), Y)
    calibrator.takes_ = "probabilities"
    calibrator.predictions_from_ = "pred"
    calibrator = Calibrator.load(calibrator.save(tmp_path / "saved.npz"))
    points = written(tmp_path / "new.csv", TABLE[["score", "pred"]])
    (points,) = unlabelled(points, calibrator, FileOptions(classes="score"))
    np.testing.assert_allclose(softmax(points.logits.astype(float), axis=1)[:, 1], P1, 1e-4)
    with refuses("pred", fix="prediction"):
        list(unlabelled(written(tmp_path / "new.csv", TABLE[["score"]]), calibrator, FileOptions()))


@pytest.mark.parametrize("names", [np.arange(3), np.array(["ant", "bee", "cat"])])
@pytest.mark.parametrize("options", [{}, {"predictions": "pred"}])
def test_of_three_classes_right_and_wrong_can_be_scored(tmp_path, names, options):
    p = rng.dirichlet(np.ones(3), 90)
    labels, predicted = rng.integers(3, size=90), p.argmax(axis=1)
    columns = {"label": names[labels], "pred": names[predicted], "confidence": p.max(axis=1)}
    table = pd.DataFrame(columns)
    with refuses("columns", fix="`label` (1 or 0) and this one, named 1", number="3 classes"):
        read(tmp_path / "a.csv", table, **options)
    is_right = 1 * (labels == predicted)
    table = pd.DataFrame({"label": is_right, "1": p.max(axis=1)})
    expected = np.where(is_right, p.max(axis=1), 1 - p.max(axis=1))
    np.testing.assert_allclose(own_of(read(tmp_path / "a.csv", table))[0], expected, 1e-4)


def test_a_prediction_that_is_missing_is_no_missing_label(tmp_path):
    table = TABLE.assign(pred=np.where(np.arange(90) == 4, np.nan, PREDICTED))
    with refuses("pred", row=4):
        read(tmp_path / "a.csv", table, classes="score", predictions="pred")
