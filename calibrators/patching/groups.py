"""Logit-shift patches of groups: the errors of named groups of points are repaired one by one.

An audit compares all utilities of all groups. An error of a group of n_g points counts times √n_g,
because chance makes errors of about 1 / √n_g. A patch moves the points of its group only, so every
group has a forecast and a run of Algorithm 1 of its own. The number of patches of all groups
together is chosen by cross-validation, like that of the patches without groups. A group that is
unseen, or too small to learn from, keeps the forecast without groups.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

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


class Members(NamedTuple):
    """Points with their groups: probabilities [n, C], labels, weights and names of groups [n]."""

    p: Array
    labels: Array
    weights: Array | None
    names: NDArray[np.str_]

    def rows(self, rows: Array) -> Self:
        """Return some of the points."""
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.p[rows], self.labels[rows], weights, self.names[rows])

    def forecast(self) -> PatchedForecast:
        """Return their forecast."""
        return PatchedForecast(self.p, self.labels, self.weights)


class GroupRun:
    """Runs of Algorithm 1, one for each group, of which each round takes the one most in error.

    `begin` begins the algorithm on the forecast of a group.
    """

    def __init__(self, members: Members, begin: Begin) -> None:
        self.runs: dict[str, Algorithm1] = {}
        for name in np.unique(members.names).tolist():
            rows = np.flatnonzero(members.names == name)
            self.runs[name] = begin(members.rows(rows).forecast())
        self.errors: dict[str, float] = {}  # √n_g times the largest error, as of the last audit

    def round(self) -> tuple[str, Patch] | None:
        """Patch the group whose error counts most; None if no group can be patched."""
        for group, run in self.runs.items():
            if group not in self.errors:
                error = find_worst(run.auditor(run.state, run.number))[2]
                self.errors[group] = error * run.state.points**0.5
        while any(error > 0 for error in self.errors.values()):
            worst = max(self.errors, key=lambda group: self.errors[group])
            patch = self.runs[worst].round()
            if patch is not None:
                del self.errors[worst]
                return worst, patch
            self.errors[worst] = 0.0
        return None


def group_patches(members: Members, begin: Begin, most: int, seed: int) -> list[tuple[str, Patch]]:
    """Return the patches of groups, as many as cross-validation chooses, at most `most`."""
    distinct, codes = np.unique(members.names, return_inverse=True)
    small = distinct[np.bincount(codes, members.weights) < SMALLEST]
    if len(small):
        warnings.warn(
            f"groups: {', '.join(small[:5])} have fewer than {SMALLEST} points, which is too "
            "few for a repair of their own; they get that of all points",
            stacklevel=6,
        )
    members = members.rows(np.flatnonzero(~np.isin(members.names, small)))
    if len(members.labels) < 2 * FOLDS:
        return []
    folds = []
    for outside, inside in folds_of(members.labels, seed):
        folds.append((GroupRun(members.rows(outside), begin), members.rows(inside)))
    shares = np.concatenate([scored.forecast().shares for _, scored in folds])
    losses = np.empty((0, len(shares)))
    moved = True
    while moved:
        now = [scored.forecast().losses("nll") for _, scored in folds]
        losses = np.concatenate([losses, np.concatenate(now)[None]])
        moved = False
        if len(losses) <= min(most, fewest_patches(losses, shares) + PATIENCE):
            for run, scored in folds:
                patch = run.round()
                if patch is not None:
                    apply_to(scored.p, scored.names, [patch], run.runs[patch[0]].update)
                    moved = True
    run = GroupRun(members, begin)
    patches = []
    for _ in range(fewest_patches(losses, shares)):
        patch = run.round()
        if patch is not None:
            patches.append(patch)
    return patches


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
