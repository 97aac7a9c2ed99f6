"""What the sample allows: whether it is large enough, and what it shows of its rarest class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.power import fewest_positives

FEWEST_POINTS = 200
"""Test points of a split below which no method is recommended."""
FEWEST_OF_A_CLASS = 3
"""Expected test points of the rarest class: with fewer, test parts without the class are common."""


@dataclass(frozen=True)
class Rarest:
    """The rarest class: its `points` of `n`; `share`: of all points that a test part has.

    needed: so many in a test part let U_CWE tell whether its forecasts are off by half
    (metrics.power), with every method.
    """

    points: int
    n: int
    share: float
    needed: int = 0

    @property
    def tested(self) -> float:
        """How many of its points a test part has on average."""
        return self.points * self.share

    @property
    def is_too_small(self) -> bool:
        """Whether even large errors of this class pass for noise."""
        return self.tested < self.needed


def rarest_of(
    logits: Mapping[str, Any], share: float, rows: Sequence[Mapping[Any, Any]]
) -> Rarest | None:
    """The rarest class, if it is known; `rows`: those of U_CWE, one of each method."""
    if logits.get("rarest_class") is None:
        return None
    needed = [
        fewest_positives(row["n_test"], row["floor_q95"])
        for row in rows
        if math.isfinite(row["floor_q95"])
    ]
    return Rarest(int(logits["rarest_class"]), int(logits["n"]), share, max(needed, default=0))


def below_chance(logits: Mapping[str, Any]) -> str:
    """Why a classifier that is worse than guessing gets no recommendation."""
    if not logits.get("below_chance"):
        return ""
    return (
        f"No method is recommended, because the classifier is worse than guessing: it is right for "
        f"{logits['accuracy']:.1f} % of the points. Check that the columns are in the order of the "
        "classes."
    )


def refusal(points: int, rarest: Rarest | None = None) -> str:
    """Why the sample is too small to recommend a method, and what is needed; else empty.

    Args:
        points: test points of a split.
    """
    if points < FEWEST_POINTS:
        return (
            f"Too few test points to recommend a method: a split has {points}, and at least "
            f"{FEWEST_POINTS} are needed."
        )
    if rarest is not None and rarest.tested < FEWEST_OF_A_CLASS:
        needed = math.ceil(FEWEST_OF_A_CLASS / rarest.share)
        return (
            "Too few points of some class to recommend a method: the rarest class has "
            f"{rarest.points} in all, and at least {needed} are needed so that every test part "
            "has some."
        )
    return ""
