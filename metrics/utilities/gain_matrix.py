"""Gain matrices (app. "Aligned and Misaligned"): the user predicts the class of largest gain.

R_ij in [0, 1] is the gain for predicting class j when the true class is i; R_ii = 1. A user
predicts j*(p) = argmax_j Σ_i p_i R_ij (the first on ties) and gains u_R(p, e_i) = R_{i, j*(p)}.

With m utilities and C = 1000 classes the gains are m × 10^6 numbers, so they are never held:
columns R_{·j} of all m utilities are made when class j is looked at, and only for the points that
could choose j. If off-diagonal gains lie in [low, high], predicting j gains between
p_j + low (1 - p_j) and p_j + high (1 - p_j), which leaves about 1.3 classes per point when
high = 0.1. Cost: one product of (points that may choose j) × C × m per class, n C m in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.utilities.base import Block, UtilityClass, parameter_matrix
from metrics.validation import InputError

ALIGNED_HIGH = 0.1
SPECIALIST_GAIN = 0.2


class GainMatrix(UtilityClass):
    """Utilities given by gain matrices.

    Args:
        gains: [m, C, C] (or [C, C]) with entries in [0, 1] and ones on the diagonal; row = true
            class, column = predicted class. For many classes use `sample_aligned` or
            `sample_misaligned`, which hold no matrices.
    """

    def __init__(self, gains: Any) -> None:
        matrices = parameter_matrix(gains, "gains", ndim=3)
        if matrices.shape[1] != matrices.shape[2]:
            raise InputError(f"gains: not square, shape {list(matrices.shape)}")
        if float(matrices.min()) < 0 or float(matrices.max()) > 1:
            raise InputError("gains: values outside [0, 1]")
        if bool((matrices.diagonal(dim1=1, dim2=2) != 1).any()):
            raise InputError("gains: the diagonal (a right prediction) must be 1")
        off_diagonal = matrices.masked_select(~torch.eye(matrices.shape[1], dtype=torch.bool))
        self._setup(len(matrices), matrices.shape[1])
        self.low, self.high = float(off_diagonal.min()), float(off_diagonal.max())
        self._matrices = matrices

    def _setup(self, utilities: int, classes: int) -> None:
        self.utilities, self.classes = utilities, classes

    @staticmethod
    def sample_aligned(count: int, classes: int, seed: int) -> GainMatrix:
        """Draw users of low tolerance for errors: off-diagonal gains uniform on (0, 0.1)."""
        return _AlignedGains(count, classes, seed)

    @staticmethod
    def sample_misaligned(count: int, classes: int, seed: int, subsets: int = 10) -> GainMatrix:
        """Draw specialists: R_ij = 0.2 for predictions j in the user's subset, else 0 (i ≠ j).

        Each user partitions the labels at random into `subsets` parts of (nearly) equal size and
        specializes in one of them.
        """
        return _SpecialistGains(count, classes, seed, subsets)

    def count(self, classes: int) -> int:
        """One utility per matrix; `InputError` if they are for another number of classes."""
        if classes != self.classes:
            raise InputError(f"gains: for {self.classes} classes, the forecast has {classes}")
        return self.utilities

    def columns(self, predicted: int) -> Tensor:
        """Return the gains for predicting class `predicted`, per true class: float64 [C, m]."""
        return self._matrices[:, :, predicted].T

    def _choices(self, forecast: Forecast) -> Iterator[tuple[int, Tensor]]:
        """Yield (class j, points that may choose j): bounds leave out the rest."""
        p = forecast.probabilities
        at_least = (p + self.low * (1 - p)).max(dim=1, keepdim=True).values
        # The margin covers rounding of the products, which have C terms.
        possible = p + self.high * (1 - p) >= at_least - 1e-12
        for j in range(forecast.classes):
            points = torch.nonzero(possible[:, j]).flatten()
            if len(points):
                yield j, points

    def choose(self, forecast: Forecast, outcomes: Outcomes) -> tuple[Tensor, Tensor, Tensor]:
        """Return what every user predicts and gains.

        Returns:
            predicted: float64 [n, m], the expected gain of the best class;
            realized: float64 [R, n, m], the gain under each draw of the labels;
            chosen: int64 [n, m], the class predicted.
        """
        n, m = forecast.n, self.count(forecast.classes)
        p = forecast.probabilities
        best = torch.full((n, m), -torch.inf, dtype=torch.float64, device=p.device)
        chosen = torch.zeros((n, m), dtype=torch.int64, device=p.device)
        realized = torch.zeros((outcomes.draws, n, m), dtype=torch.float64, device=p.device)
        for j, points in self._choices(forecast):
            gains = self.columns(j).to(p.device)
            expected = p[points] @ gains
            better = expected > best[points]
            best[points] = torch.maximum(expected, best[points])
            chosen[points] = torch.where(better, j, chosen[points])
            for draw in range(outcomes.draws):
                gained = gains[outcomes.labels[draw][points]]
                realized[draw, points] = torch.where(better, gained, realized[draw, points])
        return best, realized, chosen

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        """Return the gains of utility `index` under each outcome, given its choices: [n, C]."""
        one = self.only(index)
        nobody = torch.empty(
            (0, forecast.n), dtype=torch.int64, device=forecast.probabilities.device
        )
        _, _, chosen = one.choose(forecast, Outcomes(nobody, nobody))
        vectors = torch.empty_like(forecast.probabilities)
        for j in torch.unique(chosen).tolist():
            points = chosen[:, 0] == j
            vectors[points] = one.columns(j)[:, 0].to(vectors.device)
        return vectors

    def only(self, index: int) -> GainMatrix:
        """Return the class that holds utility `index` alone."""
        return _OneOf(self, index)

    def blocks(self, forecast: Forecast, outcomes: Outcomes) -> Iterator[Block]:
        """Yield all utilities in one block of [m, n]; codes point into the realized gains."""
        best, realized, _ = self.choose(forecast, outcomes)
        n, draws = forecast.n, outcomes.draws
        payoffs = realized.permute(2, 0, 1).reshape(-1, draws * n)
        codes = torch.arange(draws * n, device=best.device).reshape(draws, n)
        yield Block(best.T.contiguous(), payoffs, codes)


class _AlignedGains(GainMatrix):
    """Off-diagonal gains i.i.d. uniform on (0, 0.1), a column at a time from its own seed."""

    low, high = 0.0, ALIGNED_HIGH

    def __init__(self, count: int, classes: int, seed: int) -> None:
        self._setup(count, classes)
        self.seed = seed

    def columns(self, predicted: int) -> Tensor:
        """Generate the column from (seed, predicted class), the same at every call."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + predicted)
        shape = (self.classes, self.utilities)
        gains = torch.rand(shape, generator=generator, dtype=torch.float64) * ALIGNED_HIGH
        gains[predicted] = 1
        return gains


class _SpecialistGains(GainMatrix):
    """Gain 0.2 for any prediction inside the user's subset of classes, 0 for the other errors."""

    low, high = 0.0, SPECIALIST_GAIN

    def __init__(self, count: int, classes: int, seed: int, subsets: int) -> None:
        if not 1 <= subsets <= classes:
            raise InputError(f"subsets: {subsets}, expected 1 … {classes}")
        self._setup(count, classes)
        generator = torch.Generator().manual_seed(seed)
        places = torch.rand(count, classes, generator=generator).argsort(dim=1)
        part = torch.randint(subsets, (count, 1), generator=generator)
        self.member = places % subsets == part  # [m, C]

    def columns(self, predicted: int) -> Tensor:
        """0.2 for the users with `predicted` in their subset."""
        gains = torch.where(self.member[:, predicted], SPECIALIST_GAIN, 0.0).to(torch.float64)
        gains = gains.expand(self.classes, -1).clone()
        gains[predicted] = 1
        return gains


class _OneOf(GainMatrix):
    """One utility of another class."""

    def __init__(self, source: GainMatrix, index: int) -> None:
        self._setup(1, source.classes)
        self.low, self.high = source.low, source.high
        self.source, self.index = source, index

    def columns(self, predicted: int) -> Tensor:
        """The source's column, for this utility alone."""
        return self.source.columns(predicted)[:, self.index, None]
