"""What set-up compiles is what fits and scores need."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNTED = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from scripts.compile_kernels import main
from calibrators import (DirichletCalibration, IsotonicCalibration, LogitShiftPatching,
    TemperatureScaling, UtilityPatching, VectorScaling)
from metrics import scorecard

def compiled():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(("metrics", "calib"))]
    kernels = {k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
    return {(k.py_func.__qualname__, str(s)) for k in kernels for s in k.signatures}

main()
before = compiled()
x, y = load_digits(return_X_y=True)
logits = LogisticRegression(max_iter=20).fit(x, y).decision_function(x).astype(np.float32)
tuned = [DirichletCalibration(tuning_runs=2), UtilityPatching(tuning_runs=4), LogitShiftPatching()]
for calibrator in (TemperatureScaling(), VectorScaling(), IsotonicCalibration(), *tuned):
    p = calibrator.fit(logits[:900], y[:900]).predict_proba(logits[900:])
    scorecard(p, y[900:], utilities=20, floor_repetitions=20, bootstrap_repetitions=5)
assert len(before) > 20, before
print(sorted(compiled() - before))
"""


@pytest.mark.slow
def test_fits_and_scores_compile_nothing_that_set_up_did_not():
    command = [sys.executable, "-W", "ignore", "-c", COUNTED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
