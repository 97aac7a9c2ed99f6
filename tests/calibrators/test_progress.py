"""Progress bars: on stderr, only where asked for, and without effect on the fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from calibrators import DirichletCalibration, LogitShiftPatching, UtilityPatching


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (DirichletCalibration(tuning_runs=3), "DirichletCalibration: fits [########"),
        (UtilityPatching(tuning_runs=2, max_steps=5), "UtilityPatching: settings ["),
        (LogitShiftPatching(max_steps=2), "LogitShiftPatching: patches ["),
    ],
)
def test_a_bar_is_shown_where_it_is_asked_for(method, said, made_up, capsys):
    logits, labels = made_up(n=120, classes=3)
    silent = clone(method).fit(logits, labels)
    assert capsys.readouterr().err == ""
    shown = clone(method).set_params(verbose=True).fit(logits, labels)
    assert said in capsys.readouterr().err
    np.testing.assert_array_equal(silent.predict_proba(logits), shown.predict_proba(logits))
