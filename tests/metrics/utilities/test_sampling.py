"""Payoffs drawn from the sphere of the infinity norm."""

import math

import numpy as np
import pytest
import torch

from metrics import Linear, Rank
from metrics.utilities.payoffs import sample_unit_sphere_infinity


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_samples_lie_on_the_sphere_of_the_infinity_norm(classes):
    vectors = sample_unit_sphere_infinity(4000, classes, 0).numpy()
    on_face = np.abs(vectors) == 1
    assert vectors.shape == (4000, classes)
    assert (on_face.sum(axis=1) == 1).all()
    assert (np.abs(vectors) <= 1).all()


def test_samples_are_uniform_on_the_sphere():
    classes, count = 5, 20_000
    vectors = sample_unit_sphere_infinity(count, classes, 1).numpy()
    on_face = np.abs(vectors) == 1
    faces = np.concatenate([(vectors == 1).sum(axis=0), (vectors == -1).sum(axis=0)])
    expected = count / (2 * classes)
    assert ((faces - expected) ** 2 / expected).sum() < 27.9  # χ² with 9 degrees: 99.9 %
    others = np.sort(vectors[~on_face])
    uniform = np.linspace(-1, 1, others.size)
    assert np.abs(others - uniform).max() < 2 * 1.95 / math.sqrt(others.size)  # Kolmogorov
    rest = np.where(on_face, 0, vectors)
    correlations = np.corrcoef(rest.T) - np.eye(classes)
    assert np.abs(correlations).max() < 4 / math.sqrt(count)


def test_sampled_valuations_are_the_sampled_vectors_sorted():
    valuations = Rank.sample(300, 8, 3).matrix
    assert bool((valuations.diff(dim=1) <= 0).all())
    expected = sample_unit_sphere_infinity(300, 8, 3).sort(dim=1, descending=True).values
    assert torch.equal(valuations, expected)
    assert torch.equal(Linear.sample(300, 8, 3).matrix, sample_unit_sphere_infinity(300, 8, 3))


@pytest.mark.parametrize("family", [Linear, Rank])
def test_a_seed_names_a_sample(family):
    state = torch.random.get_rng_state()
    first = family.sample(50, 6, 7).matrix
    assert torch.equal(first, family.sample(50, 6, 7).matrix)
    assert not torch.equal(first, family.sample(50, 6, 8).matrix)
    assert torch.equal(state, torch.random.get_rng_state())  # the global generator is left alone
