"""Where a method fails: the worst utility of a class over the splits, in words and as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.diagram import UtilityDiagram
from pipeline.reporting.verdict import interval, short

DIGITS = 4


def pooled_note(splits: int, pooled: int) -> str:
    """What the numbers of `Failure.words` are over; nothing to say of a single split.

    `pooled`: of how many of the `splits` the worst intervals are (pipeline.failures).
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
class Failure:
    """The worst utility of one class for one method.

    name: of the utility (`class cat`); error, floor: the table's cell and its own noise floor's
    95 % quantile; low, high: the worst interval of predicted utility over the pooled points;
    share of the points in it; gap: mean of realized minus predicted there.
    """

    name: str
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


def diagram_json(diagram: UtilityDiagram) -> dict[str, Any]:
    """The curve and the bins as plain rounded numbers; null where there is no noise band."""
    bins = diagram.bins
    columns = (bins.predicted, bins.realized, bins.low, bins.high)
    return {
        "at": _rounded(diagram.predicted),
        "curve": _rounded(diagram.difference),
        "low": _rounded(diagram.low),
        "high": _rounded(diagram.high),
        "bins": [_rounded(row) for row in zip(*columns, strict=True)],
    }


def _rounded(values: Any) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None for v in values]
