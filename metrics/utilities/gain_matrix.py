"""Gain matrices (app. C.2): users predict the class of largest expected gain.

R_ij in [0, 1] is the gain for predicting class j when the true class is i; R_ii = 1. A user
predicts j*(p) = argmax_j Σ_i p_i R_ij (the first on ties) and gains u_R(p, e_i) = R_{i, j*(p)}.

With m utilities and C = 1000 classes the gains are m × 10^6 numbers. The matrices of sampled users
are therefore never stored: the gains are computed from a key or a subset of classes per user.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.kernels.uniforms import hashed_uniforms, stream_keys
from metrics.utilities.base import (
    BLOCK_BYTES,
    Block,
    UtilityClass,
    check_classes,
    check_sample,
    equal_blocks,
    parameter_matrix,
)
from metrics.validation import InputError

ALIGNED_HIGH = 0.1
SPECIALIST_GAIN = 0.2
SUBSETS = 10
"""Number of subsets of the labels; the paper does not give it."""
MARGIN = 1e-12
"""Margin of the bounds, which covers the rounding of products with C terms."""
FEW_CLASSES = 50
"""For points with more possible choices than this, tighter bounds are computed."""


@dataclass(frozen=True)
class _Users(ABC):
    """Users and their gains.

    Attributes:
        data: [m, ...], a row describes a user.
        low, high: the range of the gains off the diagonal.
    """

    data: Tensor
    classes: int
    low: float
    high: float

    def part(self, users: slice, device: torch.device) -> _Users:
        """Return the users of a slice, with their data on `device`."""
        return replace(self, data=self.data[users].to(device))

    @abstractmethod
    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        """Return the gain of each user k for predicting `predicted[:, k]`: float64 [n, m].

        Args:
            true: int64 [n], the true classes.
            predicted: integers [n, m], or [1, 1] if all users predict the same class.
        """

    def columns(self, predicted: int) -> Tensor:
        """Return the gains for predicting class `predicted`, per true class: float64 [C, m]."""
        true = torch.arange(self.classes, device=self.data.device)
        return self.gains(true, torch.full_like(true[:1, None], predicted))

    def choose(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the expected gain of each user's best class, and that class: [n, m] each.

        A class is tried only at points where any of the users may choose it. This leaves about 1.3
        classes per point if wrong predictions gain at most 0.1.
        """
        shape = (len(p), len(self.data))
        best = torch.full(shape, -torch.inf, dtype=torch.float64, device=p.device)
        chosen = torch.zeros(shape, dtype=torch.int32, device=p.device)
        for j, possible in enumerate(self._possible(p)):
            points = torch.nonzero(possible).flatten()
            if not len(points):
                continue
            expected = p[points] @ self.columns(j)
            so_far = best[points]
            chosen[points] = torch.where(expected > so_far, j, chosen[points])
            best[points] = torch.maximum(expected, so_far)
        return best, chosen

    def _possible(self, p: Tensor) -> Tensor:
        """Return which classes any user may choose at each point: bool [C, n].

        The expected gain of class j is between p_j + low (1 - p_j) and p_j + high (1 - p_j). Where
        these bounds exclude few classes, no user chooses a class that gains less than the most
        probable class gains the users at least.
        """
        highest, top = p.max(dim=1)
        possible = self._may_gain(p, self.low * p.sum(dim=1) + (1 - self.low) * highest)
        unclear = torch.nonzero(possible.sum(dim=1) > FEW_CLASSES).flatten()
        at_least = torch.empty_like(highest[unclear])
        for j in torch.unique(top[unclear]).tolist():
            here = top[unclear] == j
            at_least[here] = (p[unclear[here]] @ self.columns(j)).min(dim=1).values
        possible[unclear] = self._may_gain(p[unclear], at_least)
        return possible.T.contiguous()

    def _may_gain(self, p: Tensor, at_least: Tensor) -> Tensor:
        """Return which classes may have an expected gain of `at_least` [n]: bool, shape of p."""
        if self.high == 1:
            return torch.ones_like(p, dtype=torch.bool)
        smallest = (at_least - MARGIN - self.high * p.sum(dim=1)) / (1 - self.high)
        return p >= smallest[:, None]


class _Matrices(_Users):
    """Gains from the user's matrices: `data` holds them, [m, C, C]."""

    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        users = torch.arange(len(self.data), device=true.device)
        return self.data[users, true[:, None], predicted.to(torch.int64)]


class _Aligned(_Users):
    """Off-diagonal gains uniform on [0, high): R_ij is entry i C + j of a stream per user.

    `data` holds the keys of the streams [m].
    """

    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        entries = true[:, None] * self.classes + predicted
        gains = hashed_uniforms(self.data, entries, self.high)
        return gains.masked_fill_(predicted == true[:, None], 1.0)


class _Specialists(_Users):
    """Wrong predictions gain `high` inside a user's subset of the classes, 0 outside.

    `data` holds the subsets, bool [m, C].
    """

    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        shape = (len(true), len(self.data))
        inside = self.data.T.gather(0, predicted.to(torch.int64).expand(shape))
        gains = inside.to(torch.float64) * self.high
        return gains.masked_fill_(predicted == true[:, None], 1.0)

    def choose(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Choose the best class of the subset or the most probable of all classes.

        The expected gain of class j is p_j + high (Σp - p_j) inside the subset and p_j outside.
        """
        total, (highest, top) = p.sum(dim=1), p.max(dim=1)
        subsets, of_user = torch.unique(self.data, dim=0, return_inverse=True)
        best, chosen = [], []
        for subset in subsets:
            members = torch.nonzero(subset).flatten()
            largest, place = p[:, members].max(dim=1)
            gain, j = largest + self.high * (total - largest), members[place]
            is_inside = (gain > highest) | ((gain == highest) & (j < top))
            best.append(torch.where(is_inside, gain, highest))
            chosen.append(torch.where(is_inside, j, top).to(torch.int32))
        return torch.stack(best, dim=1)[:, of_user], torch.stack(chosen, dim=1)[:, of_user]


class GainMatrix(UtilityClass):
    """Utilities given by gain matrices.

    Args:
        gains: [m, C, C] (or [C, C]) with entries in [0, 1] and ones on the diagonal; row = true
            class, column = predicted class. For many classes use `sample_aligned` or
            `sample_misaligned`, which store no matrices.
    """

    def __init__(self, gains: Any) -> None:
        self._users = gains if isinstance(gains, _Users) else _checked(gains)

    @staticmethod
    def sample_aligned(
        count: int, classes: int, seed: int, high: float = ALIGNED_HIGH
    ) -> GainMatrix:
        """Draw users of low tolerance for errors: off-diagonal gains uniform on [0, `high`)."""
        check_sample(count, classes, high)
        return GainMatrix(_Aligned(stream_keys(seed, count), classes, 0.0, high))

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
            raise InputError(f"subsets: {subsets}, expected 1 … {classes}")
        generator = torch.Generator().manual_seed(seed)
        if partition_seed is None:
            places = torch.rand(count, classes, generator=generator).argsort(dim=1)
        else:
            shared = torch.Generator().manual_seed(partition_seed)
            places = torch.randperm(classes, generator=shared)
        part = torch.randint(subsets, (count, 1), generator=generator)
        return GainMatrix(_Specialists(places % subsets == part, classes, 0.0, gain))

    @property
    def utilities(self) -> int:
        """The number of users."""
        return len(self._users.data)

    def count(self, classes: int) -> int:
        check_classes("gains", self._users.classes, classes)
        return self.utilities

    def matrix(self, index: int) -> Tensor:
        """Return R of one utility: float64 [C, C]."""
        user = self._users.part(slice(index, index + 1), self._users.data.device)
        return torch.cat([user.columns(j) for j in range(user.classes)], dim=1)

    def choose(
        self, forecast: Forecast, users: slice = slice(None)
    ) -> tuple[_Users, Tensor, Tensor]:
        """Return users, their expected gains and the classes that they predict, [n, m] each."""
        self.count(forecast.classes)
        part = self._users.part(users, forecast.probabilities.device)
        return part, *part.choose(forecast.probabilities)

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        _, _, chosen = self.choose(forecast, slice(index, index + 1))
        return self.matrix(index).to(chosen.device).T[chosen[:, 0].to(torch.int64)]

    def spread(self, block: Block) -> Tensor:
        """Return 1 minus the smallest gain of any user; a block has only the observed gains."""
        return torch.full_like(block.predicted[:, 0], 1 - self._users.low)

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
                gains = together.part(few, best.device).gains(true, chosen[points, few])
                yield Block(best[:, few].T.contiguous(), gains.T.contiguous(), codes)


def _checked(gains: Any) -> _Matrices:
    matrices = parameter_matrix(gains, "gains", ndim=3)
    classes = matrices.shape[1]
    if matrices.shape[2] != classes or classes < 2:
        shape = list(matrices.shape)
        raise InputError(f"gains: expected square matrices of two classes or more, got {shape}")
    if float(matrices.min()) < 0 or float(matrices.max()) > 1:
        raise InputError("gains: values outside [0, 1]")
    if bool((matrices.diagonal(dim1=1, dim2=2) != 1).any()):
        raise InputError("gains: the diagonal (a right prediction) must be 1")
    diagonal = torch.eye(classes, dtype=torch.bool, device=matrices.device)
    off_diagonal = matrices.masked_select(~diagonal)
    return _Matrices(matrices, classes, float(off_diagonal.min()), float(off_diagonal.max()))
