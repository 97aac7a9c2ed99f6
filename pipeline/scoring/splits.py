"""Which points calibrate and which test: seeded permutations, or what the source says.

Points of one cluster, such as a patient's, stay on one side: else the test points would not be new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.errors import InputError
from pipeline.harness.artifacts import sha256_of_json
from pipeline.harness.cache import Record, Save
from pipeline.harness.parallel import Progress, Task
from pipeline.harness.settings import Settings
from pipeline.scoring.cached_logits import CachedLogits, clusters_of, find_logits

Indices = NDArray[np.int64]


def split_indices(
    n: int,
    split: int,
    seed: int = 0,
    calibration_fraction: float = 0.7,
    clusters: NDArray[np.int64] | None = None,
) -> tuple[Indices, Indices]:
    """Return the indices of calibration and test points of one split, each in random order.

    A split is a permutation of `n` points, drawn from the generator seeded by (`seed`, `split`).
    Its first 70 % calibrate (sec. 4). It is not stratified. All calibrators have the same splits,
    so methods are compared on equal points. Each side has at least one point.

    Args:
        clusters: [n], the number of each point's cluster. A cluster is never divided, so the share
            of calibration points is as near to 70 % as whole clusters allow.

    Raises:
        InputError: there are fewer than two points, or clusters.
    """
    units = np.arange(n) if clusters is None else np.unique(clusters)
    if len(units) < 2:
        what = f"{n} points" if clusters is None else "points of one cluster"
        raise InputError(f"{what} cannot be split; at least 2 are needed")
    generator = np.random.default_rng([seed, split])
    order = generator.permutation(n)
    if clusters is None:
        count = min(max(round(calibration_fraction * n), 1), n - 1)
        return order[:count], order[count:]
    units = generator.permutation(units)
    passed = np.bincount(clusters)[units].cumsum()
    count = 1 + int(np.abs(passed[:-1] - calibration_fraction * n).argmin())
    calibrates = np.isin(clusters[order], units[:count])
    return order[calibrates], order[~calibrates]


def indices_of(settings: Settings, cached: CachedLogits, split: int) -> tuple[Indices, Indices]:
    """The split of the source, if it has splits (a file may), or else `split_indices`.

    Raises:
        InputError: there is no such split, or it divides a cluster.
    """
    splits, tested = settings.splits, cached.arrays().get("tested")
    if tested is None:
        drawn = splits.seed, splits.calibration_fraction, clusters_of(cached)
        return split_indices(cached.n, split, *drawn)
    if split >= len(tested):
        raise InputError(
            f"splits.count={splits.count}: the file itself gives {len(tested)}; set "
            f"splits.count={len(tested)}"
        )
    calibration, test = np.flatnonzero(~tested[split]), np.flatnonzero(tested[split])
    names = cached.arrays().get("clusters")
    divided = [] if names is None else np.intersect1d(names[calibration], names[test]).tolist()
    if divided:
        raise InputError(
            f"clusters: {divided[0]} has calibration and test points in split {split}, and so have "
            f"{len(divided) - 1} others; keep each on one side, or leave the clusters out"
        )
    return calibration, test


def task_on_split(
    settings: Settings,
    split: int,
    name: str,
    path: Path,
    make: Callable[[str, Progress], tuple[Save, Record]],
    content: Mapping[str, Any],
) -> Task:
    """A task whose key has the points of one split, and `content`: settings and code."""
    cached, splits = find_logits(settings), settings.splits
    points = {
        "split": split,
        "seed": splits.seed,
        "calibration_fraction": splits.calibration_fraction,
        "logits": cached.sha256,
    }
    if settings.calibrator.get("needs_groups"):
        points["arrays"] = cached.arrays_sha256  # those of the groups, too
    key = sha256_of_json({**points, **content})
    return Task(name, settings, path, key, make, cached.size)


def absent_in_calibration(settings: Settings, cached: CachedLogits) -> dict[int, int]:
    """Classes with points of which some split has none to calibrate on: the number of such splits.

    A method that learns something for each class has nothing to learn such a class from.
    """
    labels, count = cached.arrays()["labels"], settings.splits.count
    occurs = np.bincount(labels) > 0
    absent = np.zeros(len(occurs), dtype=int)
    for split in range(count):
        calibrates, _ = indices_of(settings, cached, split)
        absent += occurs & (np.bincount(labels[calibrates], minlength=len(occurs)) == 0)
    return {int(number): int(absent[number]) for number in np.flatnonzero(absent)}
