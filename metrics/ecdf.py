"""The distribution of calibration errors over a class of utilities (paper, sec. 4 and app. B.5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from metrics.validation import InputError, check_numbers


def ecdf(errors: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the errors [M] in ascending order and, for each, the share of errors up to it."""
    values = check_numbers(errors, "errors").to(torch.float64).cpu().numpy()
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InputError(f"errors: expected finite values of shape [M], got {list(values.shape)}")
    return np.sort(values), levels(values.size)


def dkw_band(count: int, confidence: float = 0.95) -> float:
    """Return the half-width of the Dvoretzky–Kiefer–Wolfowitz band: sqrt(ln(2/δ) / (2M)).

    With probability `confidence` = 1 - δ over the draw of M = `count` utilities, the eCDF lies
    within this distance of the true CDF everywhere (Massart's constant).
    """
    if count < 1 or not 0 < confidence < 1:
        raise InputError(f"count {count} and confidence {confidence}: expected >= 1 and in (0, 1)")
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * count))


def thin(count: int, points: int) -> NDArray[np.intp]:
    """Return indices of at most `points` of `count` sorted errors, evenly spread, ends included."""
    return np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(np.intp))


def levels(count: int) -> NDArray[np.float64]:
    """Return the eCDF's value at each of `count` sorted errors: 1/M, ..., 1."""
    return np.arange(1, count + 1, dtype=np.float64) / count
