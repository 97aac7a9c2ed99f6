"""What the definition of UC implies, for whatever forecast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from metrics import (
    ClassWise,
    Linear,
    Rank,
    TopClass,
    TopK,
    binned_class_wise_error,
    binned_top_class_error,
    reference,
    utility_calibration,
    worst_interval,
)
from tests.properties.examples import PROPERTY, forecasts, pairs, seeds

CLOSE = {"rtol": 0, "atol": 1e-12}


def users(classes: int, seed: int) -> list:
    """Every standard class of utilities."""
    return [
        ClassWise(),
        TopClass(),
        TopK(),
        Linear.sample(3, classes, seed),
        Rank.sample(3, classes, seed),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
@PROPERTY
@given(pair=pairs())
def test_it_is_the_largest_over_all_closed_intervals(pair, dtype, kind):
    v, u = (values.astype(dtype) for values in pair)
    expected = reference.utility_calibration_by_intervals(*pair)
    np.testing.assert_allclose(float(utility_calibration(kind(v), kind(u))), expected, **CLOSE)


@PROPERTY
@given(pair=pairs())
def test_the_worst_interval_has_that_error(pair):
    v, u = pair
    found = worst_interval(v, u)
    inside = (v >= found.low) & (v <= found.high)
    assert abs((u - v)[inside].sum() / len(v)) == pytest.approx(found.error, abs=1e-12)


@PROPERTY
@given(example=forecasts(), seed=seeds)
def test_the_order_of_the_points_does_not_matter(example, seed):
    p, y = example
    order = np.random.default_rng(seed).permutation(len(y))
    for utilities in users(p.shape[1], seed % 1000):
        np.testing.assert_allclose(
            utilities.calibration_errors(p[order], y[order]),
            utilities.calibration_errors(p, y),
            **CLOSE,
        )


@PROPERTY
@given(example=forecasts(), seed=seeds)
def test_the_names_of_the_classes_do_not_matter(example, seed):
    p, y = example
    assume(all(len(set(row)) == len(row) for row in p))  # ties are broken by class number
    classes = p.shape[1]
    order = np.random.default_rng(seed).permutation(classes)
    other, label = p[:, order], np.argsort(order)[y]
    payoffs = reference.sample_payoffs(3, classes, np.random.default_rng(seed))
    pairs_of_utilities = [
        (Linear(payoffs), Linear(payoffs[:, order])),
        *((utilities, utilities) for utilities in (TopClass(), TopK(), Rank(-np.sort(-payoffs)))),
    ]
    for before, after in pairs_of_utilities:
        np.testing.assert_allclose(
            after.calibration_errors(other, label), before.calibration_errors(p, y), **CLOSE
        )
    errors = ClassWise().calibration_errors(p, y)
    np.testing.assert_allclose(ClassWise().calibration_errors(other, label), errors[order], **CLOSE)


@PROPERTY
@given(example=forecasts(), seed=seeds)
def test_it_is_at_most_the_range_of_the_utility(example, seed):
    p, y = example
    payoffs = reference.sample_payoffs(4, p.shape[1], np.random.default_rng(seed))
    spread = payoffs.max(axis=1) - payoffs.min(axis=1)
    assert (Linear(payoffs).calibration_errors(p, y) <= spread + 1e-12).all()
    for utilities in (ClassWise(), TopClass(), TopK()):
        errors = utilities.calibration_errors(p, y)
        assert ((errors >= 0) & (errors <= 1 + 1e-12)).all()


@PROPERTY
@given(n=st.integers(1, 60), classes=st.integers(2, 6), bins=st.integers(1, 20), seed=seeds)
def test_it_is_at_least_the_binned_error_over_the_number_of_bins(n, classes, bins, seed):
    """Bins by rank are intervals where no confidence occurs twice."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(classes), size=n)
    y = random.integers(classes, size=n)
    top = TopClass().calibration_errors(p, y)[0]
    assert top >= binned_top_class_error(p, y, bins=bins) / bins - 1e-12
    worst = ClassWise().calibration_errors(p, y).max()
    assert worst >= binned_class_wise_error(p, y, bins=bins) / bins - 1e-12


@PROPERTY
@given(example=forecasts(), times=st.integers(2, 3), seed=seeds)
def test_duplicating_all_rows_changes_nothing(example, times, seed):
    p, y = example
    for utilities in users(p.shape[1], seed % 1000):
        np.testing.assert_allclose(
            utilities.calibration_errors(np.tile(p, (times, 1)), np.tile(y, times)),
            utilities.calibration_errors(p, y),
            **CLOSE,
        )


@PROPERTY
@given(example=forecasts())
def test_top_k_is_nested(example):
    """More chances promise no less and hit no less; all classes are always right."""
    p, y = example
    classes = p.shape[1]
    promised, hit = zip(
        *(reference.predicted_and_realized(reference.top_k(p, k + 1), p, y) for k in range(classes))
    )
    assert (np.diff(promised, axis=0) >= 0).all() and (np.diff(hit, axis=0) >= 0).all()
    errors = TopK().calibration_errors(p, y)
    assert errors[0] == TopClass().calibration_errors(p, y)[0]
    assert errors[-1] == pytest.approx(0, abs=1e-12)
    gaps = np.abs(np.mean(np.array(hit) - np.array(promised), axis=1))
    assert (errors >= gaps - 1e-12).all()
