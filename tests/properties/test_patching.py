"""What projection and the paper's patching guarantee, whatever they are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from calibrators import LogitShiftPatching, UtilityPatching
from metrics import brier_score, negative_log_likelihood
from metrics.kernels.projection import project_rows_torch
from tests.metrics.kernels.projected import project_rows
from tests.properties.examples import FITTED_PROPERTY, PROPERTY, seeds


@pytest.mark.parametrize("project", [project_rows, project_rows_torch])
@PROPERTY
@given(
    points=arrays(
        np.float64,
        array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8),
        elements=st.floats(-1e3, 1e3, width=32),
    )
)
def test_projection_meets_its_optimality_conditions(points, project):
    """x is nearest to y on the simplex exactly if <y - x, q - x> <= 0 at each of its corners q."""
    projected = project(torch.from_numpy(points.copy())).numpy()
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=1e-9)
    away = points - projected
    slope = away - (away * projected).sum(axis=1, keepdims=True)
    assert slope.max() <= 1e-9 * max(1.0, np.abs(points).max())


def fitted(n: int, classes: int, sampled: bool, seed: int):
    random = np.random.default_rng(seed)
    logits = random.normal(scale=2, size=(n, classes)).round(random.integers(1, 4))
    labels = random.integers(classes, size=n)
    patching = UtilityPatching(
        step_size=1.0, steps=4, sampled=sampled, sampled_count=3, seed=seed % 1000
    )
    return patching.fit(logits, labels), logits, labels


@FITTED_PROPERTY
@given(n=st.integers(2, 25), classes=st.integers(2, 5), sampled=st.booleans(), seed=seeds)
def test_no_patch_raises_the_brier_score_and_a_replay_is_the_fit(n, classes, sampled, seed):
    patching, logits, labels = fitted(n, classes, sampled, seed)
    assert (np.diff(patching.losses_) <= 1e-12).all()
    replayed = patching.predict_proba(logits)
    np.testing.assert_allclose(brier_score(replayed, labels), patching.losses_[-1], atol=1e-10)
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_allclose(patching.predict_proba(logits[order]), replayed[order], atol=1e-9)


@FITTED_PROPERTY
@given(
    n=st.integers(2, 25),
    classes=st.integers(2, 5),
    sampled=st.sampled_from([0, 3]),
    shrinkage=st.sampled_from([0.3, 1.0]),
    seed=seeds,
)
def test_every_logit_shift_lowers_the_likelihood_loss_as_proved(
    n, classes, sampled, shrinkage, seed
):
    """By 2 ν err² / s², s the range of the utility: 1 for events, at most 2 for sampled ones."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=2, size=(n, classes)).round(random.integers(1, 4))
    labels = random.integers(classes, size=n)
    patching = LogitShiftPatching(
        start="softmax", steps=4, shrinkage=shrinkage, sampled_count=sampled, seed=seed % 1000
    )
    patching.fit(logits, labels)
    ranges = np.where(patching.kinds_ < 2, 1, 2)
    least = 2 * shrinkage * (patching.errors_ / ranges) ** 2
    assert (np.diff(patching.losses_) <= 1e-12 - least).all()
    replayed = patching.predict_proba(logits)
    np.testing.assert_allclose(
        negative_log_likelihood(replayed, labels), patching.losses_[-1], atol=1e-9
    )
