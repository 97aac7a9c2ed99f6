"""Which points calibrate and which test: seeded permutations, one per split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class TooFewPoints(ValueError):
    """Not enough points to calibrate and test on. One line."""


def split_indices(
    n: int, split: int, seed: int = 0, calibration_fraction: float = 0.7
) -> tuple[Indices, Indices]:
    """Return the indices of calibration and test points of one split, each in random order.

    A split is the permutation of `n` points drawn from the generator seeded by (`seed`, `split`),
    its first 70 % for calibration (sec. 4). Not stratified. The same for every calibrator, so
    methods are compared on equal points. Each side holds at least one point.
    """
    if n < 2:
        raise TooFewPoints(f"{n} points cannot be split; at least 2 are needed")
    order = np.random.default_rng([seed, split]).permutation(n)
    count = min(max(round(calibration_fraction * n), 1), n - 1)
    return order[:count], order[count:]


def indices_of(settings: Mapping[str, Any], n: int, split: int) -> tuple[Indices, Indices]:
    """`split_indices` with the seed and the fraction that the settings name."""
    splits = settings["splits"]
    return split_indices(n, split, splits["seed"], splits["calibration_fraction"])
