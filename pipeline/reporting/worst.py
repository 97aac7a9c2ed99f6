"""The worst utility of a class for one method, in numbers and in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .wording import interval, short


@dataclass(frozen=True)
class Worst:
    """The worst utility of one class for one method.

    Attributes:
        name, utility: its name and its number.
        error: the table's cell.
        is_beyond: whether the error is larger than chance explains; None where that is unknown.
        low, high: the worst interval of predicted utility over the pooled points.
        share, gap: the share of the points in it, and their mean of realized minus predicted.
        gain: what this user gains in a decision on average by acting from `act_from` on, not from
            `threshold` on; None: by never acting. These are the best for the points themselves.
        fresh_gain, fresh_half_width: the gain of thresholds on points that did not choose them,
            with half of its 95 % interval; None where points are too few for that.
        diagram: the numbers that its figures draw (scoring/across_splits.py).
    """

    name: str
    utility: int
    error: float
    is_beyond: bool | None
    low: float
    high: float
    share: float
    gap: float
    gain: float
    threshold: float
    act_from: float | None
    diagram: Mapping[str, Any]
    fresh_gain: float | None
    fresh_half_width: float | None

    @property
    def surely_gains(self) -> bool:
        """Whether another threshold gains on points that did not choose it, beyond chance."""
        if self.fresh_gain is None or self.fresh_half_width is None:
            return False
        return self.fresh_gain > self.fresh_half_width

    @property
    def words(self) -> str:
        """One sentence in the unit of the utility."""
        if not self.gap:
            return f"{self.name}: realized as predicted"
        direction = "more" if self.gap > 0 else "less"
        chance = {
            True: ", more than chance explains",
            False: ", which chance can explain",
            None: "",
        }
        return (
            f"{self.name}, predicted {interval(self.low, self.high)} "
            f"({100 * self.share:.0f} % of the points): "
            f"realized {short(abs(self.gap))} {direction} than predicted; "
            f"calibration error {short(self.error)}{chance[self.is_beyond]}"
        )
