"""Ignored labels, and scores of sequences and images, give what the remaining points give alone."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling, VectorScaling

GENERATOR = np.random.default_rng(0)
LOGITS = GENERATOR.normal(size=(30, 8, 3)) * 2
NOISY = (LOGITS + GENERATOR.normal(size=LOGITS.shape) * 2).argmax(axis=-1)
LABELS = np.where(GENERATOR.random((30, 8)) < 0.3, -100, NOISY)
PROBABILITIES = torch.from_numpy(LOGITS).softmax(dim=-1).numpy()
KEPT = LABELS != -100
WEIGHTS = GENERATOR.random(LABELS.shape)


def streamed(p, y, **more):
    """The bounds of two batches, the second of which has ignored points only."""
    streaming = m.StreamingCalibration(m.TopK(), classes=3)
    streaming.update(p, y, **more)
    if "ignore_index" in more:
        streaming.update(p, np.full_like(LABELS, -100).reshape(np.shape(y)), **more)
    return streaming.result().upper.tolist()


MEASURES = {
    "streaming": streamed,
    "accuracy": m.accuracy,
    "brier": m.brier_score,
    "nll": m.negative_log_likelihood,
    "tce": m.binned_top_class_error,
    "cwe": m.binned_class_wise_error,
    "errors": lambda p, y, **more: m.ClassWise().calibration_errors(p, y, **more).tolist(),
    "worst": lambda p, y, **more: m.TopK().evaluate(p, y, **more).worst,
    "floor": lambda p, y, **more: m.TopK().evaluate(p, y, repetitions=20, **more).floor,
    "interval": lambda p, y, **more: m.TopK().evaluate(p, y, **more).interval,
    "card": lambda p, y, **more: (
        m.scorecard(p, y, utilities=3, floor_repetitions=5, **more).metrics
    ),
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("form", ["last", "second", "torch", "flat", "frame", "arrow", "lists"])
def test_ignored_points_are_left_out_of_every_measure(name, form):
    measure, weights = MEASURES[name], WEIGHTS
    expected = measure(PROBABILITIES[KEPT], LABELS[KEPT], sample_weight=WEIGHTS[KEPT])
    p, y = PROBABILITIES, LABELS
    if form == "second":
        p = np.moveaxis(p, -1, 1)
    elif form == "torch":
        p, y = torch.from_numpy(p), torch.from_numpy(y)
    elif form in ("flat", "frame", "arrow"):
        p, y, weights = p.reshape(-1, 3), y.ravel(), WEIGHTS.ravel()
    elif form == "lists":
        p, y = p.tolist(), y.tolist()
    if form == "frame":
        p, y = pd.DataFrame(p), pd.Series(y, index=range(5, 5 + len(y)))
    elif form == "arrow":
        p = pa.table({f"p_{k}": p[:, k] for k in range(3)})
        with refuses("labels", fix="the order 0 to 2"):
            measure(p.select(["p_2", "p_0", "p_1"]), y, ignore_index=-100)
    assert measure(p, y, sample_weight=weights, ignore_index=-100) == expected


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("labels", [LABELS, torch.from_numpy(LABELS), LABELS.tolist()])
def test_an_ignored_name_among_numbers_is_refused(name, labels):
    with refuses("ignore_index", fix="number"):
        MEASURES[name](PROBABILITIES, labels, ignore_index="-100")


@pytest.mark.parametrize("kind", [TemperatureScaling, VectorScaling])
def test_fits_leave_ignored_points_out(kind):
    fitted = kind().fit(LOGITS, LABELS, sample_weight=WEIGHTS, ignore_index=-100)
    expected = kind().fit(LOGITS[KEPT], LABELS[KEPT], sample_weight=WEIGHTS[KEPT])
    rows = LOGITS.reshape(-1, 3)
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected.predict_proba(rows))


def test_groups_and_clusters_follow_their_points():
    groups = np.where(np.arange(8) < 4, "a", "b") * np.ones_like(LABELS, dtype=object)
    fitted = LogitShiftPatching(steps=2).fit(LOGITS, LABELS, groups=groups, ignore_index=-100)
    expected = LogitShiftPatching(steps=2).fit(LOGITS[KEPT], LABELS[KEPT], groups=groups[KEPT])
    np.testing.assert_array_equal(fitted.shifts_, expected.shifts_)
    sentences = np.arange(30)[:, None] * np.ones_like(LABELS)
    whole = (
        m.TopK()
        .evaluate(PROBABILITIES, LABELS, repetitions=20, clusters=sentences, ignore_index=-100)
        .floor
    )
    assert (
        whole
        == m.TopK()
        .evaluate(PROBABILITIES[KEPT], LABELS[KEPT], repetitions=20, clusters=sentences[KEPT])
        .floor
    )


def test_what_has_two_readings_or_other_lengths_is_refused():
    with refuses("probabilities"):
        m.accuracy(np.full((3, 3, 3), 1 / 3), np.zeros((3, 3), int))
    with refuses("probabilities"):
        m.accuracy(np.full((3, 4, 5), 1 / 5), np.zeros((3, 3), int))
    with refuses("sample_weight"):
        m.accuracy(PROBABILITIES, LABELS, sample_weight=WEIGHTS[:3], ignore_index=-100)
    with refuses("ignore_index"):
        m.accuracy(PROBABILITIES, np.full_like(LABELS, -100), ignore_index=-100)
