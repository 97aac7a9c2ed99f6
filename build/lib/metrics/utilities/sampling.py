"""Random payoffs: uniform on the unit sphere of the largest norm (sec. 4 of the paper)."""

from __future__ import annotations

import torch
from torch import Tensor

from metrics.validation import InputError


def sample_unit_sphere_infinity(count: int, classes: int, seed: int) -> Tensor:
    """Return `count` vectors uniform on {a in R^C : ‖a‖_∞ = 1}: float64 [count, C] (sec. 4).

    One uniformly chosen coordinate is ±1, the others are uniform in [-1, 1].
    """
    if count < 1 or classes < 2:
        raise InputError(f"sample: count {count} and classes {classes} must be >= 1 and >= 2")
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.rand(count, classes, generator=generator, dtype=torch.float64) * 2 - 1
    face = torch.randint(classes, (count, 1), generator=generator)
    sign = torch.randint(2, (count, 1), generator=generator).to(torch.float64) * 2 - 1
    return vectors.scatter_(1, face, sign)
