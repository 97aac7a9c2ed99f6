"""Constructor arguments out of range are named in one line when `fit` begins."""

import math

import numpy as np
import pytest

from calibrators import (
    DirichletCalibration,
    IsotonicCalibration,
    LogitShiftPatching,
    StructuredMatrixScaling,
    Uncalibrated,
    UtilityPatching,
    VectorScaling,
)
from metrics.validation import InputError


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Uncalibrated(inputs="odds"), "inputs: 'odds'; choose logits or probabilities"),
        (IsotonicCalibration(mode="both"), "mode: 'both'; choose one_vs_all or global"),
        (IsotonicCalibration(normalize="no"), "normalize: .*; give true or false"),  # Hydra's text
        (IsotonicCalibration(tie_break=-1e-9), "tie_break"),
        (VectorScaling(l2=-1.0), "l2"),
        (VectorScaling(max_iterations=0), "max_iterations"),
        (StructuredMatrixScaling(off_diagonal=0.0), "off_diagonal: 0"),
        (DirichletCalibration(on="odds"), "on: 'odds'; choose log_probabilities or logits"),
        (DirichletCalibration(odir=math.nan), "odir: nan"),
        (DirichletCalibration(odir_range=(1.0, 0.5)), "odir_range"),
        (DirichletCalibration(tuning_runs=0), "tuning_runs: 0"),
        (LogitShiftPatching(start="isotonic"), "start: 'isotonic'; choose pooled or softmax or t"),
        (LogitShiftPatching(objective="u_comb"), "objective: 'u_comb'; choose nll or brier"),
        (LogitShiftPatching(shrinkage=0), "shrinkage: 0, expected a number above 0, at most 1"),
        (UtilityPatching(start="vector"), "start: 'vector'; choose softmax or temperature"),
        (UtilityPatching(line_search="exact"), "line_search"),
        (UtilityPatching(step_size=0.0), "step_size"),
        (UtilityPatching(holdout=1.0), "holdout: 1.0, expected a share between 0 and 1"),
        (UtilityPatching(steps=-1), "steps"),
        (UtilityPatching(tolerance=-0.1), "tolerance"),
    ],
)
def test_an_argument_out_of_range_is_named(method, message):
    with pytest.raises(InputError, match=f"^{message}") as error:
        method.fit(np.eye(3), np.arange(3))
    assert "\n" not in str(error.value)
