"""Isotonic calibration against scikit-learn's regression, column by column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from utility_calibration.calibrators import IsotonicCalibration
from utility_calibration.metrics.kernels.grid import on_grid
from utility_calibration.metrics.kernels.softmax import softmax


@given(
    n=st.integers(5, 80),
    classes=st.integers(2, 5),
    unit=st.sampled_from([0.1, 1.0, 12.0, 40.0]),
    digits=st.sampled_from([0, 15]),
    mode=st.sampled_from(["one_vs_all", "global"]),
    seed=st.integers(0, 10**6),
)
def test_equals_scikit_learn(n, classes, unit, digits, mode, seed):
    """Also with ties (rounded logits), near ties (p within 1e-15 of 0 or 1)."""
    generator = np.random.default_rng(seed)
    logits = np.round(unit * generator.normal(size=(n, classes)), digits)
    labels = generator.permutation(n) % classes
    unseen = np.concatenate([logits, 3 * unit * generator.normal(size=(40, classes))])
    fitted = IsotonicCalibration(mode=mode, normalize=False).fit(logits, labels)
    # Between knots 1e-12 apart a map is so steep that another softmax gives another value.
    p, q = (on_grid(softmax(rows)) for rows in (logits, unseen))
    hits = np.eye(classes)[labels]
    for c in range(classes):
        own = (p[:, c], hits[:, c]) if mode == "one_vs_all" else (p.ravel(), hits.ravel())
        expected = IsotonicRegression(out_of_bounds="clip").fit(*own).predict(q[:, c])
        np.testing.assert_allclose(fitted.predict_proba(unseen)[:, c], expected, atol=1e-12)


def test_a_row_of_zeros_becomes_uniform():
    # A class whose probability was .4 never occurred, so every map says 0 for the last row's 1/3.
    p = [[0.6, 1e-9, 0.4], [0.4, 0.6, 1e-9], [1e-9, 0.4, 0.6], [1, 1, 1]]
    logits, labels = np.log(np.array(p)), np.arange(3)
    raw = IsotonicCalibration(normalize=False).fit(logits[:3], labels).predict_proba(logits)
    np.testing.assert_array_equal(raw[3], 0)
    normal = IsotonicCalibration().fit(logits[:3], labels).predict_proba(logits)
    np.testing.assert_array_equal(normal[3], 1 / 3)
    np.testing.assert_allclose(normal.sum(axis=1), 1)


@pytest.mark.parametrize("normalize", [True, False])
def test_classes_of_equal_value_keep_their_order_on_request(normalize):
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(300, 6))
    labels = generator.integers(0, 6, 300)
    one_map = IsotonicCalibration("global", normalize=normalize)
    plain = one_map.fit(logits, labels).predict_proba(logits)
    ordered = IsotonicCalibration("global", normalize=normalize, tie_break=1e-9)
    broken = ordered.fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(broken, plain, atol=1e-7)
    first, second = np.nonzero(np.triu(np.ones((6, 6)), 1))
    tied = plain[:, first] == plain[:, second]
    assert tied.sum() > 100
    before, after = (np.sign(q[:, first] - q[:, second])[tied] for q in (logits, broken))
    assert (before * after >= 0).all()
    assert (after != 0).mean() > 0.9  # the others differ by less than rounding keeps
