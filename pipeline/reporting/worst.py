"""The worst utility of a class over the splits and its worst interval, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.wording import interval, short


def pooled_note(splits: int, pooled: int) -> str:
    """What the numbers of `Worst.words` are over; nothing to say of a single split.

    `pooled`: of how many of the `splits` the worst intervals are (pipeline.scoring.worst).
    """
    if splits < 2:
        return ""
    first = "the first split" if pooled == 1 else f"the first {pooled} splits together"
    return (
        "Interval, share and gap are over the test points of "
        f"{'all splits together' if pooled == splits else first}; the calibration error is the "
        "table's, a mean over the splits, so it is not gap times share."
    )


@dataclass(frozen=True)
class Worst:
    """The worst utility of one class for one method.

    name: of the utility (`class cat`); utility: its number; error, floor: the table's cell and the
    95 % quantile of its own noise floor; low, high: the worst interval of predicted utility over
    the pooled points;
    share of the points in it; gap: mean of realized minus predicted there.
    """

    name: str
    utility: int
    error: float
    floor: float
    low: float
    high: float
    share: float
    gap: float
    diagram: Mapping[str, Any]

    @property
    def words(self) -> str:
        """One sentence in the unit of the utility."""
        more = "more" if self.gap >= 0 else "less"
        floor = f" (floor {short(self.floor)})" if math.isfinite(self.floor) else ""
        if not self.gap:
            return f"{self.name}: realised as predicted"
        return (
            f"{self.name}, predicted {interval(self.low, self.high)} "
            f"({100 * self.share:.0f} % of the points): "
            f"realised {short(abs(self.gap))} {more} than predicted; "
            f"calibration error {short(self.error)}{floor}"
        )

    def drawn(self) -> Mapping[str, Any]:
        """What the page's script draws."""
        heading = f"{self.name}, worst at {interval(self.low, self.high)}"
        return {**self.diagram, "heading": heading, "worst": [self.low, self.high]}
