"""The compiled running sums against plain NumPy and the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.kernels.plain import plain_prefix_range
from utility_calibration.metrics import reference
from utility_calibration.metrics.kernels.buckets import memory_of, ranges_by_buckets
from utility_calibration.metrics.kernels.grid import on_grid
from utility_calibration.metrics.kernels.prefix_range import prefix_range


def problem(utilities, n, codes, draws, seed, distinct):
    """Random predictions of at most `distinct` values each, payoffs and outcome codes."""
    random = np.random.default_rng(seed)
    levels = np.concatenate([[0.0, -0.0, 1.0, np.nextafter(1.0, 0)], random.normal(size=distinct)])
    return (
        random.choice(levels, size=(utilities, n)),
        random.normal(size=(utilities, codes)),
        random.integers(codes, size=(draws, n)),
    )


@given(
    utilities=st.integers(1, 4),
    n=st.integers(1, 40),
    codes=st.integers(1, 5),
    draws=st.integers(1, 3),
    bins=st.integers(1, 50),
    distinct=st.sampled_from([1, 5, 40]),
    seed=st.integers(0, 999),
)
def test_both_implementations_are_the_definition(utilities, n, codes, draws, bins, distinct, seed):
    predicted, payoffs, outcome = problem(utilities, n, codes, draws, seed, distinct)
    edges = (np.arange(bins + 1) * n // bins)[None]  # bins > n leaves some empty
    compiled = prefix_range(predicted, payoffs, outcome, edges)
    plain = plain_prefix_range(predicted, payoffs, outcome, edges)
    for draw, row in np.ndindex(draws, utilities):
        v, u = predicted[row], payoffs[row][outcome[draw]]
        width = n * reference.utility_calibration(v, u)
        sums = np.append(0, (u - v)[np.argsort(v, kind="stable")].cumsum())[edges[0]]
        for ranges, at_edges in (compiled, plain):
            assert float(ranges[draw, row]) == pytest.approx(width, abs=1e-12)
            assert at_edges[draw, row].tolist() == pytest.approx(sums, abs=1e-12)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_predictions_are_rounded_to_cells_and_stay_as_they_are(layout, monkeypatch):
    predicted, payoffs, codes = problem(3, 500, 4, draws=1, seed=0, distinct=40)
    predicted = layout(predicted + np.random.default_rng(0).uniform(0, 1e-3, predicted.shape))
    before, cells = predicted.copy(), np.array([[2.0**-6], [2.0**-8], [1.0]])
    monkeypatch.setattr(f"{prefix_range.__module__}.TOGETHER", 1)
    monkeypatch.setattr(f"{prefix_range.__module__}.BLOCK_ELEMENTS", 1)  # a block for each row
    ranges, _ = prefix_range(predicted, payoffs, codes, cells=cells)
    expected, _ = prefix_range(on_grid(predicted, cells), payoffs, codes)
    assert ranges.tolist() == expected.tolist()
    assert (ranges != prefix_range(predicted, payoffs, codes)[0]).all()
    assert np.array_equal(predicted, before)


def test_outcome_codes_may_be_many():
    """More than 16 bits hold, as where every point has payoffs of its own."""
    n = 70_000
    random = np.random.default_rng(0)
    v = random.random((2, n)).round(4)
    payoffs = random.normal(size=(2, n))
    edges = np.array([[0, n // 2, n]])
    for draws in (1, 3):
        codes = np.stack([random.permutation(n) for _ in range(draws)])
        found = prefix_range(v, payoffs, codes, edges)
        expected = plain_prefix_range(v, payoffs, codes, edges)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-9)


@given(
    n=st.integers(1, 300),
    draws=st.integers(1, 4),
    bins=st.integers(0, 15),
    distinct=st.sampled_from([1, 5, 40, 10_000]),
    kind=st.sampled_from(["whole", "float32", "float64", "signed"]),
    of_labels=st.booleans(),
    seed=st.integers(0, 999),
)
def test_weights_of_every_kind_equal_plain_numpy(n, draws, bins, distinct, kind, of_labels, seed):
    """Many sets of weights, or many draws of the labels under one set."""
    predicted, payoffs, outcome = problem(3, n, 4, draws if of_labels else 1, seed, distinct)
    payoffs = payoffs.round()  # some outcomes pay the same
    random, size = np.random.default_rng(seed), (1 if of_labels else draws, n)
    drawn = random.integers(4, size=size) if kind == "whole" else random.random(size)
    if kind == "signed":
        drawn, bins = drawn - 0.5, 0  # multipliers have no edges
    weights = drawn.astype(np.float32 if kind == "float32" else np.float64)
    edges = (
        weights.astype(np.float64).sum(axis=1, keepdims=True) * np.arange(bins + 1) / max(1, bins)
    )
    given = predicted, payoffs, outcome, edges if bins else None, weights
    ours = prefix_range(*given)
    plain = plain_prefix_range(
        predicted, payoffs, outcome, edges if bins else edges[:, :0], weights
    )
    for compiled, expected in zip(ours, plain, strict=True):
        np.testing.assert_allclose(compiled, expected, rtol=0, atol=1e-11)


def test_calls_that_share_an_order_find_what_they_find_alone():
    predicted, payoffs, outcome = problem(3, 60, 4, 5, 0, 40)
    edges, weights = np.array([[0, 20, 60]]), np.random.default_rng(0).random((5, 60))
    orders = []
    for call in [(outcome, edges), (outcome[:2],), (outcome[:1], None, weights)] * 2:
        shared = prefix_range(predicted, payoffs, *call, orders=orders)
        for ours, alone in zip(shared, prefix_range(predicted, payoffs, *call), strict=True):
            assert np.array_equal(ours, alone)
    assert len(orders) == 1


def test_ranges_within_the_margin_of_the_largest_are_exact():
    generator = np.random.default_rng(0)
    predicted = generator.random((300, 400))
    payoffs = generator.normal(size=(300, 5))
    codes = generator.integers(5, size=(1, 400))
    exact = prefix_range(predicted, payoffs, codes)[0][0]
    pruned = prefix_range(predicted, payoffs, codes, margin=1.0)[0][0]
    is_exact = pruned == exact
    assert is_exact[exact >= exact.max() - 1].all() and not is_exact.all()
    assert (pruned[~is_exact] < exact.max() - 1).all()


@pytest.mark.parametrize("blocks", [1, 2])
def test_utilities_with_small_residuals_get_a_bound_below_the_largest_range(blocks, monkeypatch):
    """All of the second block have small residuals, so it needs what the first one found."""
    monkeypatch.setattr(f"{prefix_range.__module__}.BLOCK_ELEMENTS", 40 * 400 // blocks)
    generator = np.random.default_rng(1)
    scale = np.where(np.arange(40) < 20, 1, 0.01)[:, None]
    predicted, payoffs = generator.random((40, 400)) * scale, generator.normal(size=(40, 5)) * scale
    codes = generator.integers(5, size=(1, 400))
    exact = prefix_range(predicted, payoffs, codes)[0][0]
    for known in (0.0, exact.max() + 50):
        bounds = prefix_range(predicted, payoffs, codes, margin=1.0, known=known)[0][0]
        assert (bounds >= exact - 1e-9).all()
        assert (bounds[20:] < exact.max() - 1).all() and (bounds[20:] > exact[20:]).all()
        assert known or bounds.max() == exact.max()


# ---- Without a sort, by buckets ------------------------------------------------------------------


def by_buckets(v, payoffs, codes, least=-np.inf):
    ranges = np.empty(1)
    given = v[None], v[None].view(np.int64), payoffs[None], codes, memory_of(len(v))
    ranges_by_buckets(*given, 0.0, -least, 0.0, ranges)
    return ranges[0]


def by_sort(*problem):
    given = (x[None] for x in problem)
    return float(plain_prefix_range(*given, np.zeros((1, 0)))[0][0, 0])


def rounding(v, payoffs, _):
    """A bound on the error of a running sum: each of n additions rounds a sum of up to n terms."""
    return 2 * np.finfo(float).eps * len(v) ** 2 * (np.abs(v).max() + np.abs(payoffs).max())


@st.composite
def crowded(draw):
    """Points with ties, crowded at either end, at any scale; payoffs of any size."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(1, 500))
    levels = draw(st.sampled_from([1, 2, 7, 1000]))
    values = random.normal(size=levels) * 10.0 ** draw(st.integers(-15, 8))
    shape = draw(st.sampled_from(["as it is", "near 0", "near 1", "with zeros"]))
    if shape == "near 0":
        values = 10.0 ** random.uniform(-320, 0, size=levels)
    elif shape == "near 1":
        values = 1 - 10.0 ** random.uniform(-18, 0, size=levels)
    elif shape == "with zeros":
        values[:: draw(st.integers(1, 3))] = random.choice([0.0, -0.0])
    v = random.choice(values, size=n)
    payoffs = random.normal(size=3) * draw(st.sampled_from([0.0, 1e-9, 1.0, 1e6]))
    return v, payoffs, random.integers(3, size=n)


@given(problem=crowded())
def test_the_range_is_that_of_the_sorted_sum(problem):
    assert by_buckets(*problem) == pytest.approx(by_sort(*problem), abs=2 * rounding(*problem))


@given(problem=crowded(), share=st.sampled_from([0.5, 1.0, 1.5]))
def test_a_small_range_may_be_given_as_a_bound_that_is_small_too(problem, share):
    exact = by_buckets(*problem)
    bound = by_buckets(*problem, least=share * exact)
    if bound != exact:
        assert exact - rounding(*problem) <= bound < share * exact


# ---- Read in wide gaps only ----------------------------------------------------------------------


def gap_range(predicted, payoffs, codes, tolerance):
    return prefix_range(predicted, payoffs, codes[None], tolerance=tolerance)[0][0]


def by_columns(predicted, payoffs, codes, tolerance):
    """The utilities as columns of a matrix."""
    return gap_range(np.ascontiguousarray(predicted.T).T, payoffs, codes, tolerance)


def by_sorts(predicted, payoffs, codes, tolerance):
    edges = np.zeros((1, 0))
    return plain_prefix_range(predicted, payoffs, codes[None], edges, tolerance=tolerance)[0][0]


IMPLEMENTATIONS = {"compiled": gap_range, "columns": by_columns, "sorts": by_sorts}
TOLERANCE = 1e-6


def torn(seed, n=300, scale=1.0):
    """Predictions with atoms, atoms torn by rounding, and neighbours within the tolerance.

    One of three is an event's: it crowds near 0, as probabilities of a class do. Another has few
    distinct predictions.
    """
    random = np.random.default_rng(seed)
    v = random.uniform(-1, 1, size=(3, n))
    v[:, ::3] = random.choice([0.0, -0.0, 0.3, 1.0], size=v[:, ::3].shape)
    v[:, ::4] = np.nextafter(v[:, ::4], random.choice([-2.0, 2.0], size=v[:, ::4].shape))
    v[:, ::5] += random.choice([-1, 0, 1], size=v[:, ::5].shape) * 0.5 * TOLERANCE
    payoffs = scale * random.uniform(-1, 1, size=(3, 4))
    codes = random.integers(4, size=n)
    v[0], payoffs[0] = 10.0 ** random.uniform(-12, 0, size=n), [0, 0, 0, scale]
    v[2] = random.integers(1 + seed % 20, size=n) / 20
    return tuple(x for x in (scale * v, payoffs, codes))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@given(seed=st.integers(0, 500), n=st.integers(1, 400), scale=st.sampled_from([1.0, 300.0]))
def test_the_range_in_wide_gaps_is_that_of_the_reference(implementation, seed, n, scale):
    v, payoffs, codes = torn(seed, n, scale)
    found = IMPLEMENTATIONS[implementation](v, payoffs, codes, TOLERANCE)
    expected = [
        n * reference.utility_calibration(v[k], payoffs[k][codes], TOLERANCE) for k in range(3)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("payoff_of", ["class", "top K", "steps", "own"])
def test_points_with_hundreds_of_outcomes_equal_plain_numpy(payoff_of):
    """Runs of outcomes that pay alike are skipped by a search, from both ends."""
    codes, n, draws = 300, 40, 200
    random = np.random.default_rng(1)
    number = np.arange(codes)
    tables = {
        "class": [number == c for c in (0, 1, 150, 298, 299)],
        "top K": [number < k for k in (1, 2, 7, 150, 299, 300)],
        "steps": [number // 64, (number // 5) % 2, number * 0],
        "own": random.normal(size=(3, codes)),
    }
    payoffs = np.array(tables[payoff_of], np.float64)
    v = random.random((len(payoffs), n)).round(2)
    skewed = (codes * random.random((draws, n)) ** 3).astype(np.int64)
    edges = np.array([[0.0, 9.5, n]])
    ours = prefix_range(v, payoffs, skewed, edges)
    plain = plain_prefix_range(v, payoffs, skewed, edges)
    for compiled, expected in zip(ours, plain, strict=True):
        np.testing.assert_allclose(compiled, expected, rtol=0, atol=1e-11)
