"""Gain matrices (app. C.2): the user predicts the class of largest gain.

R_ij in [0, 1] is the gain for predicting class j when the true class is i; R_ii = 1. A user
predicts j*(p) = argmax_j Σ_i p_i R_ij (the first on ties) and gains u_R(p, e_i) = R_{i, j*(p)}.

With m utilities and C = 1000 classes the gains are m × 10^6 numbers, so they are never held: the
columns R_{·j} of some utilities are made when class j is looked at, and only for the points that
could choose j. If off-diagonal gains lie in [low, high], predicting j gains between
p_j + low (1 - p_j) and p_j + high (1 - p_j), which leaves about 1.3 classes per point when
high = 0.1. Cost: one product of (points that may choose j) × C × m per class, 1.3 n C m in all.
Specialists need no product: the best class of their subset and the best class of all compete.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.kernels.uniforms import hashed_uniforms, stream_keys
from metrics.utilities.base import (
    BLOCK_BYTES,
    Block,
    UtilityClass,
    parameter_matrix,
    rows_per_block,
)
from metrics.validation import InputError

ALIGNED_HIGH = 0.1
SPECIALIST_GAIN = 0.2
SUBSETS = 10
"""Parts of the labels; the paper does not give their number."""
ROUNDING = 1e-12
"""Margin of the bounds: covers rounding of the products, which have C terms."""
FEW_CLASSES = 50
"""Points with more possible choices than this get a closer look."""


class GainMatrix(UtilityClass):
    """Utilities given by gain matrices.

    Args:
        gains: [m, C, C] (or [C, C]) with entries in [0, 1] and ones on the diagonal; row = true
            class, column = predicted class. For many classes use `sample_aligned` or
            `sample_misaligned`, which hold no matrices.
    """

    utilities: int
    classes: int
    low: float
    high: float

    def __init__(self, gains: Any) -> None:
        matrices = parameter_matrix(gains, "gains", ndim=3)
        if matrices.shape[1] != matrices.shape[2] or matrices.shape[1] < 2:
            shape = list(matrices.shape)
            raise InputError(f"gains: expected square matrices of two classes or more, got {shape}")
        if float(matrices.min()) < 0 or float(matrices.max()) > 1:
            raise InputError("gains: values outside [0, 1]")
        if bool((matrices.diagonal(dim1=1, dim2=2) != 1).any()):
            raise InputError("gains: the diagonal (a right prediction) must be 1")
        diagonal = torch.eye(matrices.shape[1], dtype=torch.bool, device=matrices.device)
        off_diagonal = matrices.masked_select(~diagonal)
        self.low, self.high = float(off_diagonal.min()), float(off_diagonal.max())
        self.utilities, self.classes = matrices.shape[0], matrices.shape[1]
        self._matrices = matrices

    @staticmethod
    def sample_aligned(
        count: int, classes: int, seed: int, high: float = ALIGNED_HIGH
    ) -> GainMatrix:
        """Draw users of low tolerance for errors: off-diagonal gains uniform on [0, `high`)."""
        _check_sample(count, classes, high)
        return _AlignedGains(stream_keys(seed, count), classes, high)

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

        One random partition of the labels into `subsets` disjoint parts of (nearly) equal size is
        shared by all users, who specialize in one part each. It is drawn from `partition_seed`
        alone, so users drawn with other seeds share it too; with None every user has a partition of
        their own.
        """
        _check_sample(count, classes, gain)
        if not 1 <= subsets <= classes:
            raise InputError(f"subsets: {subsets}, expected 1 … {classes}")
        generator = torch.Generator().manual_seed(seed)
        if partition_seed is None:
            places = torch.rand(count, classes, generator=generator).argsort(dim=1)
        else:
            shared = torch.Generator().manual_seed(partition_seed)
            places = torch.randperm(classes, generator=shared)
        part = torch.randint(subsets, (count, 1), generator=generator)
        return _SpecialistGains(places % subsets == part, gain)

    def count(self, classes: int) -> int:
        """One utility per matrix; `InputError` if they are for another number of classes."""
        if classes != self.classes:
            raise InputError(f"gains: for {self.classes} classes, the forecast has {classes}")
        return self.utilities

    def part(self, users: slice, device: torch.device) -> GainMatrix:
        """Return the class of some of the utilities, its parameters on `device`."""
        part = copy(self)
        part._matrices = self._matrices[users].to(device)
        part.utilities = len(part._matrices)
        return part

    def only(self, index: int) -> GainMatrix:
        """Return the class that holds utility `index` alone."""
        return self.part(slice(index, index + 1), torch.device("cpu"))

    def columns(self, predicted: int) -> Tensor:
        """Return the gains for predicting class `predicted`, per true class: float64 [C, m]."""
        return self._matrices[:, :, predicted].T

    def matrix(self, index: int) -> Tensor:
        """Return R of one utility: float64 [C, C]."""
        return self._matrices[index]

    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        """Return what utility k gains by its predictions: float64 [n, m].

        Args:
            true: int64 [n], the true classes.
            predicted: integers [n, m], the class that each utility predicts at each point.
        """
        users = torch.arange(self.utilities, device=true.device)
        return self._matrices[users, true[:, None], predicted.to(torch.int64)]

    def choose(self, forecast: Forecast) -> tuple[Tensor, Tensor]:
        """Return what every user predicts, and which class.

        Returns:
            predicted: float64 [n, m], the expected gain of the best class;
            chosen: int64 [n, m], the class predicted.
        """
        best, chosen = zip(*((best, chosen) for _, best, chosen in self._in_parts(forecast)))
        return torch.cat(best, dim=1), torch.cat(chosen, dim=1).to(torch.int64)

    def _in_parts(self, forecast: Forecast) -> Iterator[tuple[GainMatrix, Tensor, Tensor]]:
        """Yield the users in order with their `_choices`, as many at a time as fit the memory.

        On the CPU every thread works on a part of its own: the products are many and small, and
        threads that share one would wait for each other longer than it takes.
        """
        total, device = self.count(forecast.classes), forecast.probabilities.device
        usual = torch.get_num_threads()
        threads = usual if device.type == "cpu" else 1
        rounds = -(-total // (rows_per_block(forecast.n) * threads))
        size = -(-total // (rounds * threads))
        everyone = self.part(slice(None), device)
        parts = [everyone.part(slice(k, k + size), device) for k in range(0, total, size)]
        # The thread count is set per thread, but also becomes that of threads yet to start.
        with ThreadPoolExecutor(threads, "gains", torch.set_num_threads, (1,)) as pool:
            survey = everyone._survey(forecast, pool, threads)
            for start in range(0, len(parts), threads):
                together = parts[start : start + threads]
                ready = list(pool.map(lambda users: users._choices(forecast, survey), together))
                torch.set_num_threads(usual)
                yield from ((users, *found) for users, found in zip(together, ready, strict=True))

    def _survey(self, forecast: Forecast, pool: ThreadPoolExecutor, threads: int) -> Tensor:
        """Precompute for all users, for each class and point, whether any of them could choose it.

        Returns bool [C, n].
        """
        rows = forecast.probabilities.split(-(-forecast.n // threads))
        return torch.cat(list(pool.map(self._possible, rows)), dim=1)

    def _possible(self, p: Tensor) -> Tensor:
        """Which class some user may choose at some of the points: bool [C, n].

        Where no probability stands out, the bounds on the gains leave almost every class. There
        the class of the largest probability is tried on all users first: no class can be chosen
        that must gain less than this one gains for the user whom it suits least.
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
        """Which classes may gain `at_least` [n] in expectation: bool, the shape of p."""
        if self.high == 1:
            return torch.ones_like(p, dtype=torch.bool)
        smallest = (at_least - ROUNDING - self.high * p.sum(dim=1)) / (1 - self.high)
        return p >= smallest[:, None]

    def _choices(self, forecast: Forecast, survey: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best class's expected gain and the class, [n, m] each."""
        p = forecast.probabilities
        shape = (forecast.n, self.utilities)
        best = torch.full(shape, -torch.inf, dtype=torch.float64, device=p.device)
        chosen = torch.zeros(shape, dtype=torch.int32, device=p.device)
        for j, possible in enumerate(survey):
            points = torch.nonzero(possible).flatten()
            if not len(points):
                continue
            expected = p[points] @ self.columns(j)
            so_far = best[points]
            chosen[points] = torch.where(expected > so_far, j, chosen[points])
            best[points] = torch.maximum(expected, so_far)
        return best, chosen

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        """Return the gains of utility `index` under each outcome, given its choices: [n, C]."""
        one = self.only(index)
        _, chosen = one.choose(forecast)
        return one.matrix(0).to(chosen.device).T[chosen[:, 0]]

    def predicted_and_realized(
        self, forecast: Forecast, outcomes: Outcomes, index: int
    ) -> tuple[Tensor, Tensor]:
        """As in `blocks`, so that expected gains are tied here where they are tied there."""
        one = self.only(index)
        predicted, chosen = one.choose(forecast)
        one = one.part(slice(None), chosen.device)
        return predicted[:, 0], one.gains(outcomes.labels[0], chosen)[:, 0]

    def spread(self, block: Block) -> Tensor:
        """1 - the smallest gain of any user: the block holds only the gains that were drawn."""
        return torch.full_like(block.predicted[:, 0], 1 - self.low)

    def blocks(self, forecast: Forecast, outcomes: Outcomes) -> Iterator[Block]:
        """Yield utilities in blocks [b, n]; a code is a point and its label in some draw.

        Many draws have many codes, and the gains [b, L] then are what fills `BLOCK_BYTES`.
        """
        points, true, codes = _distinct_labels(outcomes.labels, forecast.classes)
        step = max(1, BLOCK_BYTES // (8 * len(points)))
        for users, best, chosen in self._in_parts(forecast):
            for start in range(0, users.utilities, step):
                some = slice(start, start + step)
                gains = users.part(some, best.device).gains(true, chosen[points, some])
                yield Block(best[:, some].T.contiguous(), gains.T.contiguous(), codes)


class _AlignedGains(GainMatrix):
    """Off-diagonal gains uniform on [0, high): R_ij is entry i C + j of the user's own stream."""

    def __init__(self, keys: Tensor, classes: int, high: float) -> None:
        self.keys = keys
        self.low, self.high = 0.0, high
        self.utilities, self.classes = len(keys), classes

    def part(self, users: slice, device: torch.device) -> GainMatrix:
        return _AlignedGains(self.keys[users].to(device), self.classes, self.high)

    def columns(self, predicted: int) -> Tensor:
        true = torch.arange(self.classes, device=self.keys.device)[:, None]
        gains = hashed_uniforms(self.keys, true * self.classes + predicted, self.high)
        gains[predicted] = 1
        return gains

    def matrix(self, index: int) -> Tensor:
        entries = torch.arange(self.classes**2, device=self.keys.device)[:, None]
        gains = hashed_uniforms(self.keys[index : index + 1], entries, self.high)
        return gains.view(self.classes, self.classes).fill_diagonal_(1)

    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        entries = true[:, None] * self.classes + predicted
        gains = hashed_uniforms(self.keys, entries, self.high)
        return gains.masked_fill_(predicted == true[:, None], 1.0)


class _SpecialistGains(GainMatrix):
    """The same gain for any wrong prediction inside the user's subset of classes, 0 for others.

    Args:
        member: bool [m, C], the subsets.
    """

    def __init__(self, member: Tensor, gain: float) -> None:
        self.member = member
        self.low, self.high = 0.0, gain
        self.utilities, self.classes = member.shape

    def part(self, users: slice, device: torch.device) -> GainMatrix:
        return _SpecialistGains(self.member[users].to(device), self.high)

    def columns(self, predicted: int) -> Tensor:
        gains = self.member[:, predicted].to(torch.float64) * self.high
        gains = gains.repeat(self.classes, 1)
        gains[predicted] = 1
        return gains

    def matrix(self, index: int) -> Tensor:
        gains = self.member[index].to(torch.float64) * self.high
        return gains.repeat(self.classes, 1).fill_diagonal_(1)

    def gains(self, true: Tensor, predicted: Tensor) -> Tensor:
        inside = self.member.T.gather(0, predicted.to(torch.int64))
        gains = inside.to(torch.float64) * self.high
        return gains.masked_fill_(predicted == true[:, None], 1.0)

    def _survey(self, forecast: Forecast, pool: ThreadPoolExecutor, threads: int) -> Tensor:
        """The ranking [n, C]."""
        return forecast.order

    def _choices(self, forecast: Forecast, survey: Tensor) -> tuple[Tensor, Tensor]:
        """The best class of the subset, or the best of all: down the ranks until one is inside.

        Predicting class j gains p_j + gain (Σp - p_j) inside the subset and p_j outside.
        """
        p, total = forecast.probabilities, forecast.probabilities.sum(dim=1)
        points = torch.arange(forecast.n, device=p.device)

        def at_rank(rank: int, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            j = survey[points, rank].to(torch.int64)
            return j, p[points, j], p[points, j] + self.high * (total[points] - p[points, j])

        top, highest, gain = at_rank(0, points)
        inside = self.member.T[top]
        best = torch.where(inside, gain[:, None], highest[:, None])
        chosen = top.to(torch.int32)[:, None].repeat(1, self.utilities)
        contested = at_rank(1, points)[2] >= highest
        points, users = torch.nonzero(~inside & contested[:, None], as_tuple=True)
        for rank in range(1, self.classes):
            j, _, gain = at_rank(rank, points)
            found = self.member[users, j]
            at, user, j, gain = points[found], users[found], j[found], gain[found]
            wins = (gain > best[at, user]) | ((gain == best[at, user]) & (j < chosen[at, user]))
            best[at[wins], user[wins]] = gain[wins]
            chosen[at[wins], user[wins]] = j[wins].to(torch.int32)
            points, users = points[~found], users[~found]
            if rank + 1 < self.classes:
                worth = at_rank(rank + 1, points)[2] >= highest[points]
                points, users = points[worth], users[worth]
            if not len(points):
                break
        return best, chosen


def _distinct_labels(labels: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return what differs among R draws of the labels [R, n], and where.

    Returns:
        points, true: int64 [L] each, all pairs of a point and a label that some draw gives it;
        codes: integers [R, n], the number of the pair.
    """
    n = labels.shape[1]
    numbers = torch.arange(n, device=labels.device)
    if len(labels) == 1:
        return numbers, labels[0].to(torch.int64), numbers[None]
    pairs = numbers * classes + labels
    seen = torch.zeros(n * classes, dtype=torch.bool, device=labels.device)
    seen[pairs.flatten()] = True
    found = torch.nonzero(seen).flatten()
    return found // classes, found % classes, seen.cumsum(0, dtype=torch.int32)[pairs] - 1


def _check_sample(count: int, classes: int, gain: float) -> None:
    if count < 1 or classes < 2:
        raise InputError(f"sample: count {count} and classes {classes} must be >= 1 and >= 2")
    if not 0 <= gain <= 1:
        raise InputError(f"sample: a gain of {gain} for errors, expected a number from 0 to 1")
