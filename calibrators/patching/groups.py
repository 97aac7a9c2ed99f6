"""Logit-shift patches of groups: the errors of named groups of points are repaired one by one.

An audit compares all utilities of all groups. An error of a group of n_g points counts times √n_g,
because chance makes errors of about 1 / √n_g. A patch moves the points of its group only, so every
group has a forecast and a run of Algorithm 1 of its own. The number of patches of all groups
together is chosen by cross-validation, like that of the patches without groups. A group that is
unseen, or too small to learn from, keeps the forecast without groups.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.arrays import Array

from .algorithm import Algorithm1, Patch
from .audit import find_worst
from .state import PatchedForecast
from .tuning import FOLDS, PATIENCE, fewest_patches, folds_of
from .update import Update
from .utilities import KINDS, Utility

SMALLEST = 50  # points that a group needs; with fewer, errors below .1 cannot be told from chance
Begin = Callable[[PatchedForecast], Algorithm1]


class GroupRun:
    """Runs of Algorithm 1, one for each group, of which each round takes the one most in error.

    `p` [n, C], `labels` and `names` [n] are probabilities, labels and groups of the points; `begin`
    begins the algorithm on the forecast of a group.
    """

    def __init__(self, p: Array, labels: Array, names: NDArray[np.str_], begin: Begin) -> None:
        rows = {name: names == name for name in np.unique(names).tolist()}
        self.runs = {g: begin(PatchedForecast(p[at], labels[at])) for g, at in rows.items()}
        self.errors: dict[str, float] = {}  # √n_g times the largest error, as of the last audit

    def round(self) -> tuple[str, Patch] | None:
        """Patch the group whose error counts most; None if no group can be patched."""
        for group, run in self.runs.items():
            if group not in self.errors:
                error = find_worst(run.auditor(run.state, run.number))[2]
                self.errors[group] = error * len(run.state.labels) ** 0.5
        while any(error > 0 for error in self.errors.values()):
            worst = max(self.errors, key=lambda group: self.errors[group])
            if (patch := self.runs[worst].round()) is not None:
                del self.errors[worst]
                return worst, patch
            self.errors[worst] = 0.0
        return None


def group_patches(
    p: Array, labels: Array, names: NDArray[np.str_], begin: Begin, most: int, seed: int
) -> list[tuple[str, Patch]]:
    """Return the patches of groups, as many as cross-validation chooses, at most `most`."""
    distinct, counts = np.unique(names, return_counts=True)
    if (small := distinct[counts < SMALLEST]).size:
        warnings.warn(
            f"groups: {', '.join(small[:5])} have fewer than {SMALLEST} points, so they get the "
            "map without groups",
            stacklevel=6,
        )
    large = ~np.isin(names, small)
    p, labels, names = p[large], labels[large], names[large]
    if len(labels) < 2 * FOLDS:
        return []
    folds = []
    for kept, held in folds_of(labels, seed):
        run = GroupRun(p[kept], labels[kept], names[kept], begin)
        folds.append((run, held, p[held]))
    losses = np.empty((0, len(labels)))
    moved = True
    while moved:
        now = [PatchedForecast(q, labels[held]).losses("nll") for _, held, q in folds]
        losses = np.concatenate([losses, np.concatenate(now)[None]])
        moved = False
        if len(losses) <= min(most, fewest_patches(losses) + PATIENCE):
            for run, held, q in folds:
                if each := run.round():
                    apply_to(q, names[held], [each], run.runs[each[0]].update)
                    moved = True
    run = GroupRun(p, labels, names, begin)
    rounds = (run.round() for _ in range(fewest_patches(losses)))
    return [each for each in rounds if each is not None]


def apply_to(
    p: Array, names: NDArray[np.str_], patches: list[tuple[str, Patch]], update: Update
) -> None:
    """Apply patches of groups to probabilities [n, C] of points with `names` [n], in place."""
    for group in dict.fromkeys(group for group, _ in patches):
        rows = names == group
        if bool(rows.any()):
            state = PatchedForecast(p[rows])
            for _, patch in (each for each in patches if each[0] == group):
                patch.apply(state, update)
            p[rows] = state.probabilities


def stored_patches(patches: list[tuple[str, Patch]]) -> dict[str, NDArray[Any]]:
    """Return patches of groups as arrays: names [T], kinds and indices [T, 2], numbers [T, 3]."""
    kinds = [(KINDS.index(p.utility.kind), p.utility.index) for _, p in patches]
    numbers = [(p.low, p.high, p.shift) for _, p in patches]
    return {
        "group_names_": np.array([group for group, _ in patches], dtype=np.str_),
        "group_utilities_": np.array(kinds, dtype=np.int64).reshape(-1, 2),
        "group_numbers_": np.array(numbers, dtype=np.float64).reshape(-1, 3),
    }


def restored_patches(arrays: Any) -> list[tuple[str, Patch]]:
    """Return the patches whose `stored_patches` are attributes of `arrays`."""
    stored = arrays.group_names_, arrays.group_utilities_, arrays.group_numbers_
    patches = []
    rows = zip(*(array.tolist() for array in stored), strict=True)
    for group, (kind, index), (low, high, shift) in rows:
        utility = Utility.standard(KINDS[kind], index)
        patches.append((group, Patch(utility, low, high, shift, error=0.0, loss_change=0.0)))
    return patches
