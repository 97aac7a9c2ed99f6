"""Sampled utilities are uniform on the faces of the cube (sec. 4), by statistical tests."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics import Rank, reference
from metrics.utilities.payoffs import sample_unit_sphere_infinity
from tests.properties.examples import PROPERTY, seeds

COUNT = 600
RARE = 1e-6
"""Some 1,000 tests in all, the same in every run: none may be as improbable as this."""


@PROPERTY
@given(classes=st.integers(2, 12), seed=seeds)
def test_payoffs_are_uniform_on_the_faces(classes, seed):
    for vectors in (
        sample_unit_sphere_infinity(COUNT, classes, seed).numpy(),
        reference.sample_payoffs(COUNT, classes, np.random.default_rng(seed)),
    ):
        on_face = np.abs(vectors) == 1
        assert (on_face.sum(axis=1) == 1).all()
        assert (np.abs(vectors) <= 1).all()
        faces = np.bincount(on_face.argmax(axis=1), minlength=classes)
        assert stats.chisquare(faces).pvalue > RARE
        positive = int((vectors[on_face] > 0).sum())
        assert stats.binomtest(positive, COUNT).pvalue > RARE
        assert stats.kstest(vectors[~on_face], stats.uniform(-1, 2).cdf).pvalue > RARE


@PROPERTY
@given(classes=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_valuations_are_such_vectors_in_descending_order(classes, seed):
    valuations = Rank.sample(20, classes, seed).payoffs(classes, slice(0, 20)).numpy()
    assert valuations.shape == (20, classes)
    assert (np.diff(valuations, axis=1) <= 0).all()
    assert (np.abs(valuations).max(axis=1) == 1).all()
