"""U_dcg (app. C.3): the outcome's rank, discounted by a power of its logarithm."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from metrics.utilities.payoffs import PayoffClass
from metrics.validation import InputError


class DiscountedCumulativeGain(PayoffClass):
    """U_dcg (app. C.3): θ_r = log2(1 + r)^-γ for each exponent γ.

    Args:
        exponents: the grid of γ >= 0.
    """

    coordinate = "rank"

    def __init__(self, exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2)) -> None:
        if not exponents or not all(math.isfinite(g) and g >= 0 for g in exponents):
            raise InputError(f"exponents: expected numbers >= 0, got {list(exponents)}")
        self.exponents = tuple(float(g) for g in exponents)

    def count(self, classes: int) -> int:
        """One utility per exponent."""
        return len(self.exponents)

    def payoffs(self, classes: int, part: slice) -> Tensor:
        """Discounts by rank."""
        ranks = torch.arange(1, classes + 1, dtype=torch.float64)
        gammas = torch.tensor(self.exponents[part], dtype=torch.float64)
        return torch.log2(1 + ranks)[None, :] ** -gammas[:, None]
