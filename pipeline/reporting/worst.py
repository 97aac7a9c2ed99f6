"""The worst utilities of a benchmark in words, and how far its present forecast misleads."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..scoring.choice import is_use, label_of
from ..scoring.decisions import Decisions
from .names import PRESENT, method_name
from .wording import SMALLEST_BOUND, bare, bound, interval, listed, short


@dataclass(frozen=True)
class Worst:
    """The worst utility of one class for one method.

    utility: its number; error, floor: the table's cell and the 95 % quantile of its noise floor;
    low, high: the worst interval of predicted utility over the pooled points; share of the points
    in it; gap: mean of realized minus predicted there. gain: what this user gains in a decision on
    average by acting from `act_from` on, not from `threshold` on; None: by never acting. These are
    the best for the points themselves. fresh_gain: the gain of thresholds on points that did not
    choose them, with half of its 95 % interval; None where points are too few for that.
    """

    name: str
    utility: int
    error: float
    floor: float
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
        floor = f" (floor {short(self.floor)})" if math.isfinite(self.floor) else ""
        return (
            f"{self.name}, predicted {interval(self.low, self.high)} "
            f"({100 * self.share:.0f} % of the points): "
            f"realized {short(abs(self.gap))} {'more' if self.gap > 0 else 'less'} than predicted; "
            f"calibration error {short(self.error)}{floor}"
        )


def present_of(decisions: Decisions, worst: Mapping[str, Mapping[str, Worst]]) -> Sequence[str]:
    """How far the present forecast misleads its users; nothing if it was not scored."""
    if PRESENT not in decisions.methods:
        return []
    return list(_sentences(decisions, {key: of[PRESENT] for key, of in worst.items()}))


def _sentences(decisions: Decisions, worst: Mapping[str, Worst]) -> Iterator[str]:
    rows = {key: decisions.rows[PRESENT, key] for key in decisions.shown if is_use(key)}
    beyond = [key for key, row in rows.items() if row.beyond_floor]
    if not beyond:
        tested = [label_of(key) for key, row in rows.items() if row.within_noise]
        if tested:
            yield f"The present probabilities are within noise of calibrated for {listed(tested)}."
        return
    errors = [f"{short(rows[key].mean)} in {label_of(key)}" for key in beyond]
    chance = listed([short(rows[key].floor_q95) for key in beyond])
    yield (
        f"With the present probabilities a user is misled on average by up to {listed(errors)}; "
        f"chance alone explains {chance}."
    )
    advice = [worst[key] for key in beyond if key in worst and worst[key].surely_gains]
    if advice:
        yield _advice(max(advice, key=lambda one: one.fresh_gain or 0.0))


def _advice(most: Worst) -> str:
    """From where a user should act, and what that gains on points that did not choose it."""
    gain, half = most.fresh_gain or 0.0, most.fresh_half_width or 0.0
    threshold, act_from = _apart(most.threshold, most.act_from)
    is_late = most.act_from is not None and most.act_from <= most.threshold
    where = f"only where more than {threshold}" if is_late else f"where at least {threshold}"
    return (
        f"Who acts on “{most.name}” {where} is predicted loses "
        f"{short(gain)} ± {short(half)} a decision: {act_from}."
    )


def _apart(threshold: float, act_from: float | None) -> tuple[str, str]:
    """The threshold and the advice, with so many decimals that both predictions differ.

    The second one is not rounded to a whole number either: .9975 must not read as 1.00.
    """
    if act_from is None or not math.isfinite(act_from):
        return bare(threshold, 2), "never act"
    gaps = abs(act_from - threshold), abs(act_from - round(act_from))
    gap = min(filter(None, gaps), default=1.0)
    digits = 2 if gap >= 0.02 else 1 - math.floor(math.log10(gap))
    return bare(threshold, digits), f"act from {bare(act_from, digits)} on"


def left_words(gains: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """What any recalibration could still gain with each method, or that no test finds anything."""
    parts = []
    for method, (gain, half) in gains.items():
        if gain > half:
            parts.append(f"{short(gain)} ± {short(half)} with {method_name(method)}")
        else:
            most = bound(max(gain + half, SMALLEST_BOUND))
            parts.append(f"nothing that a test finds with {method_name(method)} (at most {most})")
    if parts:
        start = "Recalibration could still gain, in nats a point of the first split"
        yield f"{start}: {listed(parts)}."
