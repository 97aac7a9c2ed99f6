"""Records of results, constants and small functions that need no kernels, for reports and figures.

Importing numba takes part of a second. The modules that compute share what is here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

Array = NDArray[np.float64]
LIKELIHOOD_FLOOR = 1e-12
"""The NLL raises smaller probabilities to this. Isotonic regression gives exact zeros, which would
make a point's loss infinite; with the floor such a point contributes 27.6 nats."""
ALL_CLASSES = "all"
"""The certificate of all utility classes together, without the user's, whose unit may differ."""


class WorstInterval(NamedTuple):
    """Where a utility is calibrated worst.

    Attributes:
        error: ξ mean((v - u) · 1{low <= v <= high}).
        low, high: the closed interval of predicted utility.
        sign: the paper's ξ: +1 if the predicted utility exceeds the realized one on the interval,
            -1 if it is smaller, 0 for a perfect match.
    """

    error: float
    low: float
    high: float
    sign: int


class WorstUtility(NamedTuple):
    """The utility of a class that is calibrated worst, counted from 0, and where.

    The other attributes are those of `WorstInterval`.
    """

    utility: int
    low: float
    high: float
    sign: int
    error: float


class Curve(NamedTuple):
    """Values at places of predicted utility, and the band of these values by noise: [g] each."""

    predicted: Array
    values: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class UtilityDiagram:
    """The numbers in the diagram of one utility, in the unit of the utility."""

    running: Curve
    """The running curve D(t) at places t, thinned."""
    bins: Curve
    """The binned view: mean u at mean v of the bins with points, which are equally wide."""
    worst: WorstInterval
    """The interval that attains UC."""
    share: float
    """The share of points in this interval."""
    gap: float
    """Their mean of realized minus predicted utility."""
    shares: Array | None = None
    """The share of points in each bin."""
    quantiles: Array | None = None
    """Some predicted utilities, at evenly spread ranks; for a rug."""


def tie_note(share: float) -> str:
    """Return what to say if this share of the points has several most probable classes, or ""."""
    if not share:
        return ""
    return (
        f"{100 * share:.3g} % of the points have several most probable classes. These are ranked "
        "in the order of the columns, so another order may change results."
    )


def dkw_band(count: int, confidence: float = 0.95) -> float:
    """Return the half-width of the Dvoretzky–Kiefer–Wolfowitz band: sqrt(ln(2/δ) / (2M)).

    With probability `confidence` = 1 - δ over the draw of M = `count` utilities, the eCDF lies
    within this distance of the true CDF everywhere (Massart's constant).
    """
    if count < 1 or not 0 < confidence < 1:
        name, value = ("count", count) if count < 1 else ("confidence", confidence)
        raise InputError(f"{value}, expected count >= 1, confidence in (0, 1)", field=name)
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * count))


def thin(count: int, points: int) -> NDArray[np.intp]:
    """Return indices of at most `points` of `count` sorted errors, evenly spread, ends included."""
    return np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(np.intp))


def levels(count: int) -> NDArray[np.float64]:
    """Return the eCDF's value at each of `count` sorted errors: 1/M, ..., 1."""
    return np.arange(1, count + 1, dtype=np.float64) / count
