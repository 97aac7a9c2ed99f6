"""The step of a patch: Armijo backtracking on the Brier score (app. A of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

MAX_HALVINGS = 40
ROUNDING = 1e-9
"""Armijo's test forgives this share of the predicted decrease, so that rounding does not decide."""


class Step(NamedTuple):
    """A step size η and the change of the summed loss that it brings."""

    size: float
    change: float


def armijo_step(
    try_step: Callable[[float], tuple[float, float]], first: float, armijo: float
) -> Step | None:
    """Halve η, from `first` on, until the Brier score falls by `armijo` of the linear prediction.

    Args:
        try_step: η ↦ (Σ<p - y, d>, Σ‖d‖²) for the displacements d that η brings, after projection.
            The summed Brier score then changes by exactly twice the first plus the second.

    Returns:
        None if no step of 40 halvings lowers the score.
    """
    eta = first
    for _ in range(MAX_HALVINGS):
        slope, square = try_step(eta)
        change = 2 * slope + square
        # Projection bends the path, so the decrease is measured against the displacement itself.
        if slope < 0 and change <= (armijo - ROUNDING) * 2 * slope:
            return Step(eta, change)
        eta /= 2
    return None


def first_step(error_on_rows: float, spread: float, step_size: float) -> float:
    """Return step_size / 2^k, k >= 0, the largest not above four times the best unprojected step.

    Without the simplex's borders the Brier score falls most at η* = mean error / `spread`, with
    `spread` the mean of ‖u⃗ - mean u⃗‖² over the rows, and not at all beyond 2η*. Borders shorten the
    displacement, hence the factor of four; larger steps are not worth a trial.
    """
    if spread <= 0:
        return step_size
    halvings = math.ceil(math.log2(step_size * spread / (4 * error_on_rows)) - ROUNDING)
    return step_size / 2 ** max(0, halvings)
