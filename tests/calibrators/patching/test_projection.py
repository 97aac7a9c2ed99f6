"""Projection on the simplex: by its definition, and the two implementations against each other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrators import reference
from calibrators.patching.projection import project_row, project_rows_torch


def project_rows(points: torch.Tensor) -> torch.Tensor:
    """The compiled projection of a copy: float64 [k, C]."""
    projected = points.clone(memory_format=torch.contiguous_format)
    for row in projected.numpy():
        project_row(row)
    return projected


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
    np.testing.assert_allclose(y, project("compiled", x)[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_a_matrix_is_projected_row_by_row(name, classes):
    random = np.random.default_rng(classes)
    points = random.dirichlet(np.full(classes, 0.3), size=50) + random.normal(size=(50, 1))
    points[::2] += random.normal(scale=0.3, size=(25, classes))
    projected = project(name, points)
    np.testing.assert_array_equal(projected, np.concatenate([project(name, x) for x in points]))
    np.testing.assert_allclose(projected, reference.projection(points), atol=1e-12)
