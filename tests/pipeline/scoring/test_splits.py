"""Splits are seeded permutations, 70 % for calibration."""

from types import SimpleNamespace

import numpy as np
import pytest

from metrics import InputError
from pipeline.harness.artifacts import write_npz
from pipeline.scoring.cached_logits import CachedLogits
from pipeline.scoring.splits import indices_of, split_indices


@pytest.mark.parametrize("n", [2, 10, 1198])
def test_every_point_is_on_exactly_one_side(n):
    calibration, test = split_indices(n, 4)
    assert sorted([*calibration, *test]) == list(range(n))
    assert len(calibration) == min(round(0.7 * n), n - 1)
    assert len(test) >= 1


def test_splits_differ_and_repeat():
    splits = [split_indices(500, k, seed=s)[0] for k in range(10) for s in (0, 1)]
    assert len({tuple(s) for s in splits}) == 20
    np.testing.assert_array_equal(
        split_indices(500, 3, seed=1)[1], split_indices(500, 3, seed=1)[1]
    )


def test_the_splits_of_the_source_come_first_and_no_more_than_it_gives(tmp_path):
    tested = np.array([[False, True, False, True]])
    write_npz(tmp_path / "x.npz", logits=np.zeros((4, 2)), tested=tested)
    cached = CachedLogits(tmp_path / "x.npz", "any", {"n": 4})
    settings = SimpleNamespace(splits=SimpleNamespace(count=2))
    calibration, test = indices_of(settings, cached, 0)
    assert (calibration.tolist(), test.tolist()) == ([0, 2], [1, 3])
    with pytest.raises(InputError, match=r"splits.count=2: the file itself gives 1"):
        indices_of(settings, cached, 1)
