"""Rows that repeat: copies are told from points with the same answers, and count once if asked."""

import numpy as np
import pytest

from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.own.columns.file_points import FilePoints
from utility_calibration.pipeline.own.points.copies import note_on_copies, without_copies


def points(n=300, classes=3, seed=0, digits=None, votes=None):
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(classes), n)
    y = (p.cumsum(axis=1) < random.random((n, 1))).sum(axis=1).clip(max=classes - 1)
    if digits is not None:
        p = np.round(p, digits)
    if votes is not None:
        p = random.multinomial(votes, p) / votes
    with np.errstate(divide="ignore"):
        return np.log(p).astype(np.float32), y


def given(z, y, **more):
    return FilePoints("probabilities", z, labels=y, **more)


@pytest.mark.parametrize("times", [2, 5])
def test_copies_are_noted_and_count_once(times):
    z, y = points()
    copied = given(np.repeat(z, times, axis=0), np.repeat(y, times))
    assert note_on_copies(copied)
    once = without_copies(copied)
    np.testing.assert_array_equal(once.matrix, z)
    np.testing.assert_array_equal(once.labels, y)
    assert not note_on_copies(once)
    assert not note_on_copies(given(copied.matrix, copied.labels, clusters=copied.labels))


@pytest.mark.parametrize("kind", [{"digits": 2}, {"votes": 7}, {"votes": 100}, {}])
def test_other_points_of_the_same_answers_are_no_copies(kind):
    assert not note_on_copies(given(*points(2000, classes=2, **kind)))
    z, _ = points(20, seed=1)  # the leaves of a tree
    leaves = np.repeat(z, 50, axis=0)
    p = np.exp(leaves.astype(float))
    y = (p.cumsum(axis=1) < np.random.default_rng(2).random((1000, 1))).sum(axis=1).clip(max=2)
    assert not note_on_copies(given(leaves, y))


def test_copies_that_differ_elsewhere_are_refused():
    z, y = points(50)
    weights = np.arange(100.0)
    with pytest.raises(InputError) as refused:
        without_copies(given(np.tile(z, (2, 1)), np.tile(y, 2), weights=weights))
    assert refused.value.field == "weights"
