"""The compiled softmax against SciPy's."""

import numpy as np
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from utility_calibration.metrics.kernels.softmax import exponential, softmax

logits = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9),
    elements=st.floats(-1e4, 1e4),
)


def test_exponential_is_exact_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-707.9, 0, 4001), -np.logspace(-300, 0, 301)])
    computed = np.array([exponential(value) for value in x])
    np.testing.assert_allclose(computed, np.exp(x), rtol=5e-16)
    assert exponential(0.0) == 1.0
    assert exponential(-709.0) == exponential(-1e300) == 0.0


@given(logits, st.floats(1e-6, 1e6))
def test_softmax_equals_scipy(values, scale):
    computed = softmax(values, scale)
    np.testing.assert_allclose(
        computed, scipy.special.softmax(scale * values, axis=1), rtol=1e-8, atol=1e-15
    )
    np.testing.assert_allclose(computed.sum(axis=1), 1, atol=1e-14)
