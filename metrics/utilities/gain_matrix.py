"""Gain matrices (app. C.2): users predict the class of largest expected gain.

R_ij in [0, 1] is the gain for predicting class j when the true class is i; R_ii = 1. A user
predicts j*(p) = argmax_j Σ_i p_i R_ij (the first on ties) and gains u_R(p, e_i) = R_{i, j*(p)}.

With m utilities and C = 1000 classes the gains are m × 10^6 numbers. The matrices of sampled users
are therefore never stored: the gains are computed from a key or a subset of classes per user.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..errors import InputError
from ..forecast import Forecast, Outcomes, row_bytes
from ..kernels.draws import Draws
from ..kernels.threads import product
from ..kernels.uniforms import hashed_uniforms, stream_keys
from .base import UtilityClass
from .blocks import BLOCK_BYTES, Block, equal_blocks
from .parameters import check_classes, check_sample, parameter_matrix

ALIGNED_HIGH = 0.1
SPECIALIST_GAIN = 0.2
SUBSETS = 10
"""Number of subsets of the labels; the paper does not give it."""
MARGIN = 1e-12
"""Margin of the bounds, which covers the rounding of products with C terms."""
FEW_CLASSES = 50
"""For points with more possible choices than this, tighter bounds are computed."""


class GainMatrix(UtilityClass):
    """Utilities given by gain matrices (app. C.2): a user predicts the class of largest gain.

    Errors are in the unit of the gains, in which a right prediction is 1.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> gains = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]
    >>> GainMatrix(gains).calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.35])

    Args:
        gains: [m, C, C] (or [C, C]) with entries in [0, 1] and ones on the diagonal; row = true
            class, column = predicted class. For many classes use `sample_aligned` or
            `sample_misaligned`, which store no matrices.

    Raises:
        InputError: gains of another shape, outside [0, 1], or not 1 on the diagonal.
    """

    def __init__(self, gains: ArrayLike) -> None:
        matrices = parameter_matrix(gains, "gains", ndim=3)
        classes = matrices.shape[1]
        if matrices.shape[2] != classes or classes < 2:
            shape = list(matrices.shape)
            message = f"expected square matrices of two classes or more, got {shape}"
            fix = "give a line per true class, a column per predicted one"
            raise InputError(message, field="gains", fixes=fix)
        is_outside = (matrices < 0) | (matrices > 1)
        if is_outside.any():
            _, row, column = np.argwhere(is_outside)[0].tolist()
            message = f"{float(matrices[is_outside][0]):g}, outside [0, 1],"
            fixes = ["divide all gains by the largest one", "for losses take Decision (--losses)"]
            raise InputError(message, field="gains", row=row, column=str(column), fixes=fixes)
        diagonal = matrices.diagonal(axis1=1, axis2=2)
        is_other = diagonal != 1
        if is_other.any():
            row = int(np.argwhere(is_other)[0, 1])
            message = f"{float(diagonal[is_other][0]):g} for a right prediction, expected 1,"
            fixes = ["write 1 there", "for losses take Decision (--losses)"]
            raise InputError(message, field="gains", row=row, column=str(row), fixes=fixes)
        off = matrices[:, ~np.eye(classes, dtype=bool)]
        self._hold(matrices, classes, float(off.min()), float(off.max()))

    def _hold(self, users: Array, classes: int, low: float, high: float) -> None:
        """Take what describes each user, [m, ...], and the range of the gains off the diagonal."""
        self._users, self._classes, self._low, self._high = users, classes, low, high

    @staticmethod
    def sample_aligned(
        count: int, classes: int, seed: int, high: float = ALIGNED_HIGH
    ) -> GainMatrix:
        """Draw users of low tolerance for errors: off-diagonal gains uniform on [0, `high`).

        InputError: no user, fewer than two classes, or `high` outside [0, 1].
        """
        check_sample(count, classes, high)
        return _Aligned(stream_keys(seed, count), classes, high)

    @staticmethod
    def sample_misaligned(
        count: int,
        classes: int,
        seed: int,
        subsets: int = SUBSETS,
        gain: float = SPECIALIST_GAIN,
        partition_seed: int | None = 0,
    ) -> GainMatrix:
        """Draw specialists: R_ij = `gain` for predictions j in the user's subset, else 0 (i ≠ j).

        A random partition, which depends only on `partition_seed`, divides the labels into
        `subsets` disjoint sets of (nearly) equal size, and each user specializes in one. With None
        every user has a different partition.

        InputError: no user, fewer than two classes, a gain outside [0, 1], or more subsets than
        classes.
        """
        check_sample(count, classes, gain)
        if not 1 <= subsets <= classes:
            raise InputError(f"{subsets}, expected 1 … {classes}", field="subsets")
        draws = Draws(seed)
        if partition_seed is None:
            places = draws.short_uniforms(count, classes).argsort(axis=1)
        else:
            places = Draws(partition_seed).permutation(classes)
        part = draws.below(subsets, count, 1)
        return _Specialists(places % subsets == part, classes, gain)

    @property
    def utilities(self) -> int:
        """The number of users."""
        return len(self._users)

    @property
    def different(self) -> int:
        """The number of users who differ: specialists of one shared part are the same user."""
        return len(np.unique(row_bytes(self._users.reshape(self.utilities, -1) + 0)))

    def count(self, classes: int) -> int:
        check_classes("gains", self._classes, classes)
        return self.utilities

    def part(self, users: slice) -> GainMatrix:
        """Return the users of a slice."""
        part = copy(self)
        part._users = self._users[users]
        return part

    def matrix(self, index: int) -> Array:
        """Return R of one utility: float64 [C, C]."""
        user = self.part(slice(index, index + 1))
        return np.concatenate([user._columns(j) for j in range(self._classes)], axis=1)

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        _, _, chosen = self.choose(forecast, slice(index, index + 1))
        return self.matrix(index).T[chosen[:, 0]]

    def bounds(self, classes: int) -> Array:
        return np.tile([self._low, 1.0], (self.count(classes), 1))

    def spread(self, block: Block) -> Array:
        """Return 1 minus the smallest gain of any user; a block has only the observed gains."""
        return np.full_like(block.predicted[:, 0], 1 - self._low)

    def blocks(
        self, forecast: Forecast, outcomes: Outcomes, part: slice = slice(None)
    ) -> Iterator[Block]:
        """Yield utilities in blocks [b, n]; each code numbers a pair of a point and a drawn label.

        Many draws have many codes. Then the payoffs [b, L] limit the number of users in a block.
        """
        points, true, codes = outcomes.distinct(forecast.classes)
        step = max(1, BLOCK_BYTES // (8 * len(points)))
        for users in equal_blocks(range(self.count(forecast.classes))[part], forecast.n):
            together, best, chosen = self.choose(forecast, users)
            for start in range(0, best.shape[1], step):
                columns = slice(start, start + step)
                gains = together.part(columns)._gains(true, chosen[points, columns])
                predicted = np.ascontiguousarray(best[:, columns].T)
                yield Block(predicted, np.ascontiguousarray(gains.T), codes)

    def choose(
        self, forecast: Forecast, users: slice = slice(None)
    ) -> tuple[GainMatrix, Array, Array]:
        """Return users, their expected gains and the classes that they predict, [n, m] each."""
        self.count(forecast.classes)
        part = self.part(users)
        return part, *part._choose(forecast.probabilities)

    def _gains(self, true: Array, predicted: Array) -> Array:
        """Return each user's gain for `predicted` [n, m], [1, 1] if all are the same: [n, m]."""
        numbers = np.arange(len(self._users))
        return self._users[numbers, true[:, None], predicted]

    def _columns(self, predicted: int) -> Array:
        """Return the gains for predicting class `predicted`, per true class: float64 [C, m]."""
        true = np.arange(self._classes)
        return self._gains(true, np.full((1, 1), predicted))

    def _choose(self, p: Array) -> tuple[Array, Array]:
        """Return the expected gain of each user's best class, and that class: [n, m] each."""
        shape = (len(p), self.utilities)
        best, chosen = np.full(shape, -np.inf), np.zeros(shape, np.int32)
        # If wrong predictions gain at most 0.1, about 1.3 classes per point are tried.
        for j, possible in enumerate(np.ascontiguousarray(self._possible(p).T)):
            points = np.flatnonzero(possible)
            if len(points):
                expected, so_far = product(p[points], self._columns(j)), best[points]
                chosen[points] = np.where(expected > so_far, j, chosen[points])
                best[points] = np.maximum(expected, so_far)
        return best, chosen

    def _possible(self, p: Array) -> Array:
        """Return which classes any user may choose at each point: bool [n, C].

        The expected gain of class j is between p_j + low (1 - p_j) and p_j + high (1 - p_j). Where
        these bounds exclude few classes, no user chooses a class that gains less than the most
        probable class gains the users at least.
        """
        if self._high == 1:
            return np.ones_like(p, dtype=bool)

        def may_gain(p: Array, at_least: Array) -> Array:
            smallest = (at_least - MARGIN - self._high * p.sum(axis=1)) / (1 - self._high)
            return p >= smallest[:, None]

        highest, top = p.max(axis=1), p.argmax(axis=1)
        possible = may_gain(p, self._low * p.sum(axis=1) + (1 - self._low) * highest)
        unclear = np.flatnonzero(possible.sum(axis=1) > FEW_CLASSES)
        at_least = np.empty_like(highest[unclear])
        for j in np.unique(top[unclear]).tolist():
            here = top[unclear] == j
            at_least[here] = product(p[unclear[here]], self._columns(j)).min(axis=1)
        possible[unclear] = may_gain(p[unclear], at_least)
        return possible


class _Aligned(GainMatrix):
    """Off-diagonal gains uniform on [0, high): R_ij is entry i C + j of a stream per user."""

    def __init__(self, keys: Array, classes: int, high: float) -> None:
        self._hold(keys, classes, 0.0, high)

    def _gains(self, true: Array, predicted: Array) -> Array:
        entries = true[:, None] * self._classes + predicted
        gains = hashed_uniforms(self._users, entries, self._high)
        return np.where(predicted == true[:, None], 1.0, gains)


class _Specialists(GainMatrix):
    """Wrong predictions gain `high` inside a user's subset of the classes, bool [m, C], else 0."""

    def __init__(self, subsets: Array, classes: int, high: float) -> None:
        self._hold(subsets, classes, 0.0, high)

    def _gains(self, true: Array, predicted: Array) -> Array:
        shape = (len(true), self.utilities)
        inside = np.take_along_axis(self._users.T, np.broadcast_to(predicted, shape), axis=0)
        gains = inside * self._high
        return np.where(predicted == true[:, None], 1.0, gains)

    def _choose(self, p: Array) -> tuple[Array, Array]:
        """Choose the class of largest p_j + high (Σp - p_j) in the subset, or of largest p_j."""
        total, highest, top = p.sum(axis=1), p.max(axis=1), p.argmax(axis=1)
        _, first, of_user = np.unique(
            row_bytes(self._users), return_index=True, return_inverse=True
        )
        best, chosen = [], []
        for subset in self._users[first]:
            members = np.flatnonzero(subset)
            largest, place = p[:, members].max(axis=1), p[:, members].argmax(axis=1)
            gain, j = largest + self._high * (total - largest), members[place]
            is_inside = (gain > highest) | ((gain == highest) & (j < top))
            best.append(np.where(is_inside, gain, highest))
            chosen.append(np.where(is_inside, j, top).astype(np.int32))
        return np.stack(best, axis=1)[:, of_user], np.stack(chosen, axis=1)[:, of_user]
