"""Projection on the simplex: by its definition, and the two implementations against each other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import reference
from metrics.kernels.projection import project_rows_torch
from tests.metrics.kernels.projected import project_rows

IMPLEMENTATIONS = {"compiled": project_rows, "torch": project_rows_torch}
COORDINATES = st.one_of(
    st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1.0, 1 / 3, 1e-300, 1 - 2**-53, 50.0, -50.0])
)
POINTS = st.lists(COORDINATES, min_size=1, max_size=12).map(np.array)


def project(name, x):
    return IMPLEMENTATIONS[name](torch.from_numpy(np.atleast_2d(x).copy())).numpy()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@settings(derandomize=True, deadline=None)
@given(x=POINTS)
def test_the_projection_is_the_nearest_point_of_the_simplex(name, x):
    """No point z of the simplex, hence no corner, has <x - y, z - y> > 0."""
    (y,) = project(name, x)
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(1, abs=1e-12)
    assert ((x - y) - (x - y) @ y).max() <= 1e-11
    np.testing.assert_allclose(y, reference.projection(x[None])[0], atol=1e-11)


@settings(derandomize=True, deadline=None)
@given(x=POINTS)
def test_both_implementations_agree(x):
    np.testing.assert_allclose(project("compiled", x), project("torch", x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_a_matrix_is_projected_row_by_row(name, classes):
    random = np.random.default_rng(classes)
    points = random.dirichlet(np.full(classes, 0.3), size=50) + random.normal(size=(50, 1))
    points[::2] += random.normal(scale=0.3, size=(25, classes))
    projected = project(name, points)
    np.testing.assert_array_equal(projected, np.concatenate([project(name, x) for x in points]))
    np.testing.assert_allclose(projected, reference.projection(points), atol=1e-12)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_points_of_the_simplex_stay_where_they_are(name):
    corners, centre = np.eye(4), np.full((1, 4), 0.25)
    edge = np.array([[0.5, 0.5, 0.0, 0.0]])
    points = np.concatenate([corners, centre, edge])
    np.testing.assert_array_equal(project(name, points), points)
    dense = np.random.default_rng(0).dirichlet(np.ones(30), size=20)
    np.testing.assert_allclose(project(name, dense), dense, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@settings(derandomize=True, deadline=None)
@given(x=POINTS, shift=st.floats(-5, 5))
def test_a_shift_of_all_entries_changes_nothing(name, x, shift):
    np.testing.assert_allclose(project(name, x + shift), project(name, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("scale", [1e3, 1e6, 1e9])
def test_far_points_land_on_the_simplex(name, scale):
    points = np.random.default_rng(1).normal(scale=scale, size=(100, 8))
    points[0] = scale
    projected = project(name, points)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=1e-15 * scale + 1e-12)


def test_the_points_given_are_not_changed():
    points = torch.full((3, 4), 0.7, dtype=torch.float64)
    project_rows_torch(points)
    assert bool((points == 0.7).all())
