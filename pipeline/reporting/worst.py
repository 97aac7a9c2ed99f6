"""The worst utility of a class for one method, in numbers and in words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from .wording import interval, short

LOSSES = "u_losses"  # the metric whose utility is minus what a decision costs
PLAIN = ("u_cwe", "u_topk")  # of these a worst place is a probability and how often it comes true
COST_NAME = "the cost of your decisions"


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

    def as_cost(self) -> Self:
        """The same of the cost, which is minus the utility: people read costs as positive."""
        return replace(
            self,
            name=COST_NAME,
            low=-self.high,
            high=-self.low,
            gap=-self.gap,
            diagram=_of_costs(self.diagram) if self.diagram else {},
        )

    def words(self, key: str) -> str:
        """One sentence on a utility of this metric, in its unit."""
        if not self.gap:
            return f"{self.name}: all comes true as predicted"
        chance = {
            True: ", larger than chance alone explains",
            False: ", which chance alone can explain",
            None: "",
        }
        size = short(abs(self.gap))
        difference = f"the real value is {size} {'higher' if self.gap > 0 else 'lower'} on average"
        if key in PLAIN:
            difference = f"{size} {'more' if self.gap > 0 else 'less'} comes true on average"
        return (
            f"{self.name}, where {interval(self.low, self.high)} is predicted "
            f"({100 * self.share:.0f} % of the cases): {difference}; calibration error "
            f"{short(self.error)}{chance[self.is_beyond]}"
        )


def _of_costs(diagram: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a diagram for minus the utility, in the order of growing predictions.

    The running difference then sums the points from a predicted cost on, not those up to it.
    """
    costs: dict[str, Any] = {
        "at": [_minus(place) for place in reversed(diagram["at"])],
        "curve": [_minus(value) for value in reversed(diagram["curve"])],
        "low": [_minus(end) for end in reversed(diagram["high"])],
        "high": [_minus(end) for end in reversed(diagram["low"])],
    }
    costs["bins"] = [
        [_minus(predicted), _minus(realized), _minus(high), _minus(low)]
        for predicted, realized, low, high in reversed(diagram["bins"])
    ]
    costs["density"] = [
        [_minus(right), _minus(left), share] for left, right, share in reversed(diagram["density"])
    ]
    return costs


def _minus(value: float | None) -> float | None:
    """Minus a number; None where there is none, never -0."""
    return None if value is None else 0.0 - value
