"""Our own base class is enough for scikit-learn's tools, which are not imported before."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from utility_calibration.calibrators import (
    DirichletCalibration,
    TemperatureScaling,
    VectorScaling,
    Wrapped,
)


def test_nothing_heavy_is_imported_before_it_is_used():
    program = """
import sys
from utility_calibration.calibrators import TemperatureScaling
import numpy as np
z = np.random.default_rng(0).normal(size=(50, 3))
TemperatureScaling().fit(z, z.argmax(axis=1) * (np.arange(50) % 5 > 0)).predict_proba(z)
print([name for name in ("sklearn", "torch", "scipy.special", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_parameters_are_read_set_and_shown():
    method = DirichletCalibration(odir=2.0, l2=0.5)
    assert method.get_params()["odir"] == 2.0
    assert repr(method) == "DirichletCalibration(l2=0.5, odir=2.0)"
    assert repr(clone(method).set_params(l2=None, odir=None)) == "DirichletCalibration()"
    with pytest.raises(ValueError, match="depth"):
        method.set_params(depth=3)
    nested = Wrapped(LogisticRegression(C=2.0))
    assert nested.get_params()["estimator__C"] == 2.0
    assert "estimator__C" not in nested.get_params(deep=False)
    assert clone(nested).set_params(estimator__C=3.0).estimator.C == 3.0
    assert nested.estimator.C == 2.0


def test_scikit_learns_tools_take_a_calibrator(made_up):
    logits, labels = made_up(n=300)
    assert is_classifier(TemperatureScaling())
    scores = cross_val_score(VectorScaling(), logits, labels, cv=3, scoring="neg_log_loss")
    assert scores.shape == (3,) and np.isfinite(scores).all()
    p = cross_val_predict(TemperatureScaling(), logits, labels, cv=3, method="predict_proba")
    np.testing.assert_allclose(p.sum(axis=1), 1)
    search = GridSearchCV(VectorScaling(), {"l2": [1e-8, 1.0]}, scoring="neg_log_loss", cv=3)
    assert search.fit(logits, labels).best_params_["l2"] in (1e-8, 1.0)
    pipeline = make_pipeline(FunctionTransformer(lambda z: 2 * z), TemperatureScaling())
    pipeline.set_params(temperaturescaling__loss="brier").fit(logits, labels)
    expected = TemperatureScaling(loss="brier").fit(2 * logits, labels).predict_proba(2 * logits)
    np.testing.assert_array_equal(pipeline.predict_proba(logits), expected)
    check_is_fitted(pipeline.steps[-1][1])
