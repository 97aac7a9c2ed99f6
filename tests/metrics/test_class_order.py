"""Which column belongs to which class: labels that are True and False, and opposite names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
import torch

from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.calibrators import TemperatureScaling

rng = np.random.default_rng(0)
SURE = rng.random(60)
HAPPENED = rng.random(60) < SURE
TRUE_FIRST = np.stack([SURE, 1 - SURE], axis=1)
EXPECTED = m.brier_score(TRUE_FIRST[:, ::-1], HAPPENED.astype(int))


@pytest.mark.parametrize("names", [[True, False], ["True", "False"], ["TRUE", "FALSE"]])
@pytest.mark.parametrize(
    "labels",
    [
        HAPPENED,
        HAPPENED.astype(object),
        pd.Series(HAPPENED, dtype="boolean"),
        pd.Series(HAPPENED).astype("category"),
        torch.tensor(HAPPENED),
    ],
)
def test_true_and_false_belong_to_the_columns_of_these_names(names: Any, labels: Any) -> None:
    frame = pd.DataFrame(TRUE_FIRST, columns=names)
    assert m.brier_score(frame, labels) == pytest.approx(EXPECTED)
    assert m.brier_score(frame.iloc[:, ::-1], labels) == pytest.approx(EXPECTED)


def test_other_doors_match_true_and_false_by_name_too() -> None:
    arrow = pyarrow.table({"True": SURE, "False": 1 - SURE})
    assert m.brier_score(arrow, HAPPENED) == pytest.approx(EXPECTED)
    logits = pd.DataFrame(np.log(TRUE_FIRST), columns=[True, False])
    fitted = TemperatureScaling().fit(logits, HAPPENED)
    by_place = TemperatureScaling().fit(np.log(TRUE_FIRST), 1 - HAPPENED.astype(int))
    assert fitted.temperature_ == by_place.temperature_
    said = fitted.predict(logits)
    assert list(said == "True") == list(SURE > 0.5)
    assert fitted.score(logits, HAPPENED) == np.mean((SURE > 0.5) == HAPPENED)


@pytest.mark.parametrize(
    "names",
    [[True, False], ["p_true", "p_false"], ["yes prob", "no prob"], ["Positive", "Negative"]],
)
def test_numbers_beside_columns_of_the_opposite_order_are_refused(names: Any) -> None:
    frame, numbers = pd.DataFrame(TRUE_FIRST, columns=names), HAPPENED.astype(int)
    for labels in (numbers, numbers.astype(float)):
        with refuses("labels", fix=f"{names[1]}, {names[0]}"):
            m.brier_score(frame, labels)
    assert m.brier_score(frame.iloc[:, ::-1], numbers) == pytest.approx(EXPECTED)
    assert m.brier_score(frame.to_numpy()[:, ::-1], numbers) == pytest.approx(EXPECTED)


@pytest.mark.parametrize("as_text", [True, False])
def test_batches_of_a_stream_have_their_columns_in_one_order(as_text: bool, tmp_path: Any) -> None:
    frame = pd.DataFrame(TRUE_FIRST, columns=["sick", "well"])
    labels = np.where(HAPPENED, "sick", "well") if as_text else 1 - HAPPENED.astype(int)
    streaming = m.StreamingCalibration(m.ClassWise(), 2)
    streaming.update(frame[:30], labels[:30])
    streaming.save(tmp_path / "state.npz")
    again = m.StreamingCalibration(m.ClassWise(), 2).load(tmp_path / "state.npz")
    other = m.StreamingCalibration(m.ClassWise(), 2)
    other.update(frame[["well", "sick"]][30:], labels[30:])
    for one in (streaming, again):
        with refuses("probabilities", fix="one order"):
            one.update(frame[["well", "sick"]][30:], labels[30:])
        with refuses("other", fix="one order"):
            one.merge(other)
        one.update(frame[30:], labels[30:])
        whole = m.ClassWise().calibration_errors(TRUE_FIRST, 1 - HAPPENED.astype(int))
        assert (one.result().lower <= whole + 1e-12).all()
        assert (whole <= one.result().upper + 1e-12).all()
