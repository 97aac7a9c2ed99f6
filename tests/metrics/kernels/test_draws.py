"""The numbers of a seed are torch's, bit for bit, and stay what they are without torch."""

import numpy as np
import pytest

from utility_calibration.metrics.kernels.draws import Draws


def test_a_seed_gives_the_numbers_that_torch_gave():
    """The constants were written by torch 2.13 for seed 7, one call after the other."""
    draws = Draws(7)
    assert draws.uniforms(2).tolist() == UNIFORMS
    assert draws.short_uniforms(2).tolist() == SHORT_UNIFORMS
    assert draws.below(10, 4).tolist() == [7, 9, 8, 1]
    assert draws.keys(2).tolist() == [710123494352685591, 20668929189138777]
    assert draws.permutation(6).tolist() == [2, 1, 4, 0, 5, 3]
    assert draws.normals(17)[[0, 15, 16]].tolist() == NORMALS


UNIFORMS = [0.279380429906404, 0.27369371365176565]
SHORT_UNIFORMS = [0.23276156187057495, 0.4250614047050476]
NORMALS = [-0.9181216288523826, -0.5818734534408125, 0.7128254442688293]


@pytest.mark.parametrize("seed", [0, 1, -3, 2**40 + 5])
def test_they_are_those_of_torch(seed):
    torch = pytest.importorskip("torch", reason="torch is not installed, to compare with")
    draws, generator = Draws(seed), torch.Generator().manual_seed(seed)
    ends = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
    double = {"dtype": torch.float64, "generator": generator}
    for n in (16, 17, 31, 4099):
        assert np.array_equal(draws.normals(n), torch.randn(n, **double).numpy())
        assert np.array_equal(draws.uniforms(n, 3), torch.rand(n, 3, **double).numpy())
        short = torch.rand(n, generator=generator).numpy()
        assert np.array_equal(draws.short_uniforms(n), short)
        whole = torch.randint(n, (7, 2), generator=generator).numpy()
        assert np.array_equal(draws.below(n, 7, 2), whole)
        keys = torch.randint(*ends, (n,), generator=generator).numpy()
        assert np.array_equal(draws.keys(n), keys)
        order = torch.randperm(n, generator=generator).numpy()
        assert np.array_equal(draws.permutation(n), order)


@pytest.mark.parametrize("n", [0, 1])
def test_an_order_of_no_or_one_number(n):
    assert Draws(0).permutation(n).tolist() == list(range(n))
