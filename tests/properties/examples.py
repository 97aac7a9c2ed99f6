"""What hypothesis draws for the properties: small forecasts with many ties, and how often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

PROPERTY = settings(
    max_examples=100,
    derandomize=True,  # the same examples in every run
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class Example(NamedTuple):
    """A forecast [n, C] and labels [n]."""

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]


@st.composite
def forecasts(draw: st.DrawFn, least_rows: int = 1, most_rows: int = 12) -> Example:
    """Rows of multiples of 1/32, ties among and inside them; sums in any order are exact."""
    n, classes = draw(st.integers(least_rows, most_rows)), draw(st.integers(2, 5))
    cuts = draw(arrays(np.int64, (n, classes - 1), elements=st.integers(0, 32)))
    ends = np.column_stack([np.zeros(n), np.sort(cuts, axis=1), np.full(n, 32)])
    labels = draw(arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    return Example(np.diff(ends, axis=1) / 32, labels)


seeds = st.integers(0, 2**32 - 1)
