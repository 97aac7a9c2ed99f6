"""Vector scaling: the optimum of its loss, compared with SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from calibrators import VectorScaling


@settings(deadline=None, max_examples=24)
@given(
    n=st.integers(60, 200),
    classes=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["nll", "brier"]),
)
def test_it_finds_a_minimum_of_its_loss(n, classes, seed, loss):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes))
    labels = (logits + generator.gumbel(size=(n, classes))).argmax(axis=1)
    fitted = VectorScaling(loss=loss).fit(logits, labels)
    truth = np.eye(classes)[labels]

    def mean_loss(parameters):
        w, b = parameters.reshape(2, -1)
        log_p = log_softmax(w * logits + b, axis=1)
        losses = -log_p * truth if loss == "nll" else (np.exp(log_p) - truth) ** 2
        return losses.sum(axis=1).mean()

    found = np.concatenate([fitted.scale_, fitted.shift_])
    assert fitted.loss_ == pytest.approx(mean_loss(found), rel=1e-10)
    starts = [found]  # the Brier score may have a lower minimum elsewhere
    if loss == "nll":
        starts.append(np.repeat([1.0, 0.0], classes))
    for start in starts:
        assert fitted.loss_ <= minimize(mean_loss, start, method="BFGS").fun + 1e-7


def test_an_early_stop_is_reported(made_up):
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        VectorScaling(max_iterations=2).fit(*made_up())
