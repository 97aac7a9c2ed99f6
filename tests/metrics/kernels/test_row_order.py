"""The order of a moved row, whatever it was before: always by (probability descending, class)."""

import numpy as np
import pytest

from metrics.kernels.row_order import FEW, repair_order

SIZES = [1, 2, 10, FEW, FEW + 1, 400]


def repaired(p, order, shuffled):
    """The repaired order and the ranked probabilities."""
    n = len(p)
    order, ranked = order.astype(np.int32), np.full(n, np.nan)
    floats, ints = np.empty((2, n)), np.empty((3, n), np.int32)
    repair_order(p, order, ranked, shuffled, *floats, np.empty(n, np.uint64), ints)
    return order, ranked


def rows(classes, random):
    """Kinds of rows, each of which takes its own way through the repair."""
    p = random.dirichlet(np.full(classes, 0.3))
    yield "smooth", p
    yield "constant", np.full(classes, 1 / classes)
    yield "one hot", np.eye(classes)[random.integers(classes)]
    yield "zeros", p * (random.random(classes) < 0.3)
    yield "negative zeros", np.where(random.random(classes) < 0.5, -0.0, p)
    yield "ties", random.integers(4, size=classes) / 4
    yield "crowded in one bucket", (1 + 1e-4 * random.random(classes)) / classes
    yield "beyond all buckets", np.where(p == p.max(), 1.0, 1e-12 * p)
    yield "over many octaves", np.exp2(-40 * random.random(classes))
    yield "nothing", np.zeros(classes)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("classes", SIZES)
@pytest.mark.parametrize("before", ["the same", "one exchanged", "reversed", "random"])
def test_the_order_is_that_of_a_stable_sort(before, classes, shuffled):
    random = np.random.default_rng(classes)
    for name, p in rows(classes, random):
        expected = np.argsort(-p, kind="stable")
        order = expected.copy()
        if before == "one exchanged":
            a, b = random.integers(classes, size=2)
            order[a], order[b] = order[b], order[a]
        elif before == "reversed":
            order = order[::-1]
        elif before == "random":
            order = random.permutation(classes)
        found, ranked = repaired(p, order, shuffled)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        np.testing.assert_array_equal(ranked, p[expected], err_msg=name)
