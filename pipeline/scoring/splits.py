"""Which points calibrate and which test: seeded permutations, or what the source says."""

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
from pipeline.scoring.cached_logits import CachedLogits, find_logits

Indices = NDArray[np.int64]


def split_indices(
    n: int, split: int, seed: int = 0, calibration_fraction: float = 0.7
) -> tuple[Indices, Indices]:
    """Return the indices of calibration and test points of one split, each in random order.

    A split is a permutation of `n` points, drawn from the generator seeded by (`seed`, `split`).
    Its first 70 % calibrate (sec. 4). It is not stratified. All calibrators have the same splits,
    so methods are compared on equal points. Each side has at least one point.

    Raises:
        InputError: there are fewer than two points.
    """
    if n < 2:
        raise InputError(f"{n} points cannot be split; at least 2 are needed")
    order = np.random.default_rng([seed, split]).permutation(n)
    count = min(max(round(calibration_fraction * n), 1), n - 1)
    return order[:count], order[count:]


def indices_of(settings: Settings, cached: CachedLogits, split: int) -> tuple[Indices, Indices]:
    """The split of the source, if it has splits (a file may), or else `split_indices`.

    Raises:
        InputError: there is no such split.
    """
    splits, tested = settings.splits, cached.arrays().get("tested")
    if tested is None:
        return split_indices(cached.n, split, splits.seed, splits.calibration_fraction)
    if split >= len(tested):
        raise InputError(
            f"splits.count={splits.count}: the file itself gives {len(tested)}; set "
            f"splits.count={len(tested)}"
        )
    return np.flatnonzero(~tested[split]), np.flatnonzero(tested[split])


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
    key = sha256_of_json({**points, **content})
    return Task(name, settings, path, key, make, cached.size)
