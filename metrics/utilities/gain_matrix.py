"""Gain matrices (app. C.2): users predict the class of largest expected gain.

R_ij in [0, 1] is the gain for predicting class j when the true class is i; R_ii = 1. A user
predicts j*(p) = argmax_j Σ_i p_i R_ij (the first on ties) and gains u_R(p, e_i) = R_{i, j*(p)}.

With m utilities and C = 1000 classes the gains are m × 10^6 numbers. The matrices of sampled users
are therefore never stored: the gains are computed from a key or a subset of classes per user.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..forecast import Forecast, Outcomes
from ..kernels.uniforms import hashed_uniforms, stream_keys
from ..validation import InputError
from .base import (
    BLOCK_BYTES,
    Block,
    UtilityClass,
    check_classes,
    check_sample,
    equal_blocks,
    parameter_matrix,
)

ALIGNED_HIGH = 0.1
SPECIALIST_GAIN = 0.2
SUBSETS = 10
"""Number of subsets of the labels; the paper does not give it."""
MARGIN = 1e-12
"""Margin of the bounds, which covers the rounding of products with C terms."""
FEW_CLASSES = 50
"""For points with more possible choices than this, tighter bounds are computed."""


class GainMatrix(UtilityClass):
    """Utilities given by gain matrices.

    Args:
        gains: [m, C, C] (or [C, C]) with entries in [0, 1] and ones on the diagonal; row = true
            class, column = predicted class. For many classes use `sample_aligned` or
            `sample_misaligned`, which store no matrices.
    """

    def __init__(self, gains: ArrayLike) -> None:
        matrices = parameter_matrix(gains, "gains", ndim=3)
        classes = matrices.shape[1]
        if matrices.shape[2] != classes or classes < 2:
            shape = list(matrices.shape)
            raise InputError(
                f"expected square matrices of two classes or more, got {shape}", field="gains"
            )
        if float(matrices.min()) < 0 or float(matrices.max()) > 1:
            raise InputError("values outside [0, 1]", field="gains")
        if bool((matrices.diagonal(dim1=1, dim2=2) != 1).any()):
            raise InputError("the diagonal (a right prediction) must be 1", field="gains")
        wrong = ~torch.eye(classes, dtype=torch.bool, device=matrices.device)
        self._hold(matrices, classes, *map(float, torch.aminmax(matrices[:, wrong])))

    def _hold(self, users: Tensor, classes: int, low: float, high: float) -> None:
        """Take what describes each user, [m, ...], and the range of the gains off the diagonal."""
        self._users, self._classes, self._low, self._high = users, classes, low, high

    @staticmethod
    def sample_aligned(
        count: int, classes: int, seed: int, high: float = ALIGNED_HIGH
    ) -> GainMatrix:
        """Draw users of low tolerance for errors: off-diagonal gains uniform on [0, `high`)."""
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
        """
        check_sample(count, classes, gain)
        if not 1 <= subsets <= classes:
            raise InputError(f"{subsets}, expected 1 … {classes}", field="subsets")
        generator = torch.Generator().manual_seed(seed)
        if partition_seed is None:
            places = torch.rand(count, classes, generator=generator).argsort(dim=1)
        else:
            shared = torch.Generator().manual_seed(partition_seed)
            places = torch.randperm(classes, generator=shared)
        part = torch.randint(subsets, (count, 1), generator=generator)
        return _Specialists(places % subsets == part, classes, gain)

    @property
    def utilities(self) -> int:
        """The number of users."""
        return len(self._users)

    @property
    def different(self) -> int:
        """The number of users who differ: specialists of one shared part are the same user."""
        return len(torch.unique(self._users, dim=0))

    def count(self, classes: int) -> int:
        check_classes("gains", self._classes, classes)
        return self.utilities

    def part(self, users: slice, device: torch.device) -> GainMatrix:
        """Return the users of a slice, with what describes them on `device`."""
        part = copy(self)
        part._users = self._users[users].to(device)
        return part

    def matrix(self, index: int) -> Tensor:
        """Return R of one utility: float64 [C, C]."""
        user = self.part(slice(index, index + 1), self._users.device)
        return torch.cat([user._columns(j) for j in range(self._classes)], dim=1)

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        _, _, chosen = self.choose(forecast, slice(index, index + 1))
        return self.matrix(index).to(chosen.device).T[chosen[:, 0].to(torch.int64)]

    def bounds(self, classes: int) -> Tensor:
        return torch.tensor([[self._low, 1.0]], dtype=torch.float64).repeat(self.count(classes), 1)

    def spread(self, block: Block) -> Tensor:
        """Return 1 minus the smallest gain of any user; a block has only the observed gains."""
        return torch.full_like(block.predicted[:, 0], 1 - self._low)

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
                few = slice(start, start + step)
                gains = together.part(few, best.device)._gains(true, chosen[points, few])
                yield Block(best[:, few].T.contiguous(), gains.T.contiguous(), codes)

    def choose(
        self, forecast: Forecast, users: slice = slice(None)
    ) -> tuple[GainMatrix, Tensor, Tensor]:
        """Return users, their expected gains and the classes that they predict, [n, m] each."""
        self.count(forecast.classes)
        part = self.part(users, forecast.probabilities.device)
        return part, *part._choose(forecast.probabilities)

    def _gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        """Return each user's gain for `predicted` [n, m], [1, 1] if all are the same: [n, m]."""
        numbers = torch.arange(len(self._users), device=true.device)
        return self._users[numbers, true[:, None], predicted.to(torch.int64)]

    def _columns(self, predicted: int) -> Tensor:
        """Return the gains for predicting class `predicted`, per true class: float64 [C, m]."""
        true = torch.arange(self._classes, device=self._users.device)
        return self._gains(true, torch.full_like(true[:1, None], predicted))

    def _choose(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the expected gain of each user's best class, and that class: [n, m] each."""
        shape = (len(p), self.utilities)
        best = torch.full(shape, -torch.inf, dtype=torch.float64, device=p.device)
        chosen = torch.zeros(shape, dtype=torch.int32, device=p.device)
        # If wrong predictions gain at most 0.1, about 1.3 classes per point are tried.
        for j, possible in enumerate(self._possible(p).T.contiguous()):
            points = torch.nonzero(possible).flatten()
            if len(points):
                expected, so_far = p[points] @ self._columns(j), best[points]
                chosen[points] = torch.where(expected > so_far, j, chosen[points])
                best[points] = torch.maximum(expected, so_far)
        return best, chosen

    def _possible(self, p: Tensor) -> Tensor:
        """Return which classes any user may choose at each point: bool [n, C].

        The expected gain of class j is between p_j + low (1 - p_j) and p_j + high (1 - p_j). Where
        these bounds exclude few classes, no user chooses a class that gains less than the most
        probable class gains the users at least.
        """
        if self._high == 1:
            return torch.ones_like(p, dtype=torch.bool)

        def may_gain(p: Tensor, at_least: Tensor) -> Tensor:
            smallest = (at_least - MARGIN - self._high * p.sum(dim=1)) / (1 - self._high)
            return p >= smallest[:, None]

        highest, top = p.max(dim=1)
        possible = may_gain(p, self._low * p.sum(dim=1) + (1 - self._low) * highest)
        unclear = torch.nonzero(possible.sum(dim=1) > FEW_CLASSES).flatten()
        at_least = torch.empty_like(highest[unclear])
        for j in torch.unique(top[unclear]).tolist():
            here = top[unclear] == j
            at_least[here] = (p[unclear[here]] @ self._columns(j)).min(dim=1).values
        possible[unclear] = may_gain(p[unclear], at_least)
        return possible


class _Aligned(GainMatrix):
    """Off-diagonal gains uniform on [0, high): R_ij is entry i C + j of a stream per user."""

    def __init__(self, keys: Tensor, classes: int, high: float) -> None:
        self._hold(keys, classes, 0.0, high)

    def _gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        entries = true[:, None] * self._classes + predicted
        gains = hashed_uniforms(self._users, entries, self._high)
        return gains.masked_fill_(predicted == true[:, None], 1.0)


class _Specialists(GainMatrix):
    """Wrong predictions gain `high` inside a user's subset of the classes, bool [m, C], else 0."""

    def __init__(self, subsets: Tensor, classes: int, high: float) -> None:
        self._hold(subsets, classes, 0.0, high)

    def _gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        shape = (len(true), self.utilities)
        inside = self._users.T.gather(0, predicted.to(torch.int64).expand(shape))
        gains = inside.to(torch.float64) * self._high
        return gains.masked_fill_(predicted == true[:, None], 1.0)

    def _choose(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Choose the class of largest p_j + high (Σp - p_j) in the subset, or of largest p_j."""
        total, (highest, top) = p.sum(dim=1), p.max(dim=1)
        subsets, of_user = torch.unique(self._users, dim=0, return_inverse=True)
        best, chosen = [], []
        for subset in subsets:
            members = torch.nonzero(subset).flatten()
            largest, place = p[:, members].max(dim=1)
            gain, j = largest + self._high * (total - largest), members[place]
            is_inside = (gain > highest) | ((gain == highest) & (j < top))
            best.append(torch.where(is_inside, gain, highest))
            chosen.append(torch.where(is_inside, j, top).to(torch.int32))
        return torch.stack(best, dim=1)[:, of_user], torch.stack(chosen, dim=1)[:, of_user]
