"""Splits are seeded permutations, 70 % for calibration."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.refusals import refuses
from utility_calibration.pipeline.harness.artifacts import write_npz
from utility_calibration.pipeline.scoring.points import (
    LARGEST,
    CachedLogits,
    clusters_of,
    indices_of,
    split_indices,
    splits_together,
)

MINE = SimpleNamespace(source={"path": "mine.npz", "test": None})
DRAWN = SimpleNamespace(count=1, seed=0, calibration_fraction=0.7)
ONE = SimpleNamespace(splits=DRAWN, benchmark=MINE)
TWO = SimpleNamespace(splits=SimpleNamespace(count=2), benchmark=MINE)


def cached(path, n, **arrays):
    write_npz(path, logits=np.zeros((n, 2)), **arrays)
    return CachedLogits(path, "any", {"n": n}, arrays_sha256=str(path))


@pytest.mark.parametrize("n", [2, 10, 1198])
def test_every_point_is_on_exactly_one_side_and_splits_differ_but_repeat(n):
    calibration, test = split_indices(n, 4)
    assert sorted([*calibration, *test]) == list(range(n))
    assert len(calibration) == min(round(0.7 * n), n - 1)
    np.testing.assert_array_equal(split_indices(n, 4)[1], test)
    splits = [split_indices(500, k, seed=s)[0] for k in range(10) for s in (0, 1)]
    assert len({tuple(split) for split in splits}) == 20


def test_the_splits_of_the_source_come_first_and_no_more_than_it_gives(tmp_path):
    given = cached(tmp_path / "x.npz", 4, tested=np.array([[False, True, False, True]]))
    assert [side.tolist() for side in indices_of(TWO, given, 0)] == [[0, 2], [1, 3]]
    with refuses("splits.count", fix="splits.count=1"):
        indices_of(TWO, given, 1)


def test_points_of_a_cluster_stay_on_one_side():
    clusters = np.random.default_rng(0).integers(40, size=500)
    splits = [split_indices(500, k, clusters=clusters) for k in range(20)]
    for calibration, test in splits:
        assert sorted([*calibration, *test]) == list(range(500))
        assert not set(clusters[calibration]) & set(clusters[test])
        assert abs(len(calibration) - 350) <= np.bincount(clusters).max() / 2
    assert len({tuple(test) for _, test in splits}) == 20
    large = split_indices(10, 0, clusters=np.array([0] * 9 + [1]))  # at least one on each side
    assert sorted(map(len, large)) == [1, 9]


def test_what_cannot_be_split_is_told_with_the_persons_file(tmp_path):
    for name, n, more in (("labels", 1, {}), ("clusters", 6, {"clusters": np.ones(6)})):
        with refuses(name, fix="two", file="mine.npz"):
            indices_of(ONE, cached(tmp_path / f"{name}.npz", n, **more), 0)


def test_clusters_of_the_file_reach_the_splits(tmp_path):
    names = np.array(["b", "a", "b", "c", "a", "c"])
    free = cached(tmp_path / "x.npz", 6, clusters=names)
    assert clusters_of(free).tolist() == [1, 0, 1, 2, 0, 2]
    calibration, test = indices_of(ONE, free, 0)
    assert len(calibration) == 4 and len(set(names[test])) == 1
    tested = np.array([[False, True, False, True, True, False]])
    given = cached(tmp_path / "y.npz", 6, clusters=names, tested=tested)
    with refuses("clusters", number="split 0", file="mine.npz"):
        indices_of(ONE, given, 0)


def test_as_many_splits_are_taken_together_as_fit_and_at_least_one():
    sizes = (0, LARGEST // 10, LARGEST // 3, LARGEST // 2 + 1, LARGEST + 1)
    assert [splits_together(size, 10) for size in sizes] == [10, 10, 3, 1, 1]
