"""What the definition of UC implies, for whatever forecast."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given

from metrics import (
    ClassWise,
    Linear,
    Rank,
    TopClass,
    TopK,
    reference,
)
from tests.properties.examples import PROPERTY, forecasts, seeds

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
