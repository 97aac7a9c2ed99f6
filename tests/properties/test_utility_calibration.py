"""What the definition of UC implies, for whatever forecast."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from utility_calibration.metrics import ClassWise, Linear, Rank, TopClass, TopK, reference

CLOSE = {"rtol": 0, "atol": 1e-12}


@st.composite
def forecasts(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of multiples of 1/32 [n, C] with many ties, and labels [n]; any sum is exact."""
    n, classes = draw(st.integers(1, 12)), draw(st.integers(2, 5))
    cuts = draw(arrays(np.int64, (n, classes - 1), elements=st.integers(0, 32)))
    ends = np.column_stack([np.zeros(n), np.sort(cuts, axis=1), np.full(n, 32)])
    labels = draw(arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    return np.diff(ends, axis=1) / 32, labels


seeds = st.integers(0, 2**32 - 1)


@given(example=forecasts(), seed=seeds)
def test_the_order_of_the_points_does_not_matter(example, seed):
    p, y = example
    order = np.random.default_rng(seed).permutation(len(y))
    sampled = (family.sample(3, p.shape[1], seed % 1000) for family in (Linear, Rank))
    for utilities in (ClassWise(), TopClass(), TopK(), *sampled):
        found = utilities.calibration_errors(p[order], y[order])
        np.testing.assert_allclose(found, utilities.calibration_errors(p, y), **CLOSE)


@given(example=forecasts(), seed=seeds)
def test_the_names_of_the_classes_do_not_matter(example, seed):
    p, y = example
    assume(all(len(set(row)) == len(row) for row in p))  # ties are broken by class number
    classes = p.shape[1]
    order = np.random.default_rng(seed).permutation(classes)
    other, label = p[:, order], np.argsort(order)[y]
    payoffs = reference.sample_payoffs(3, classes, np.random.default_rng(seed))
    unchanged = TopClass(), TopK(), Rank(-np.sort(-payoffs))
    for before, after in [
        (Linear(payoffs), Linear(payoffs[:, order])),
        *zip(unchanged, unchanged, strict=True),
    ]:
        np.testing.assert_allclose(
            after.calibration_errors(other, label), before.calibration_errors(p, y), **CLOSE
        )
    errors = ClassWise().calibration_errors(p, y)
    np.testing.assert_allclose(ClassWise().calibration_errors(other, label), errors[order], **CLOSE)
