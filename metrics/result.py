"""What is known of the calibration errors of one utility class, on one forecast's points.

`UtilityClass.evaluate` returns this record, and so does a scorecard for each of its metrics. Each
part is computed when it is asked for, and kept. A scorecard has computed its parts already, because
its metrics share all draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .acting import ActingGain, acting_gain
from .arrays import Array, like
from .certificate import CalibrationInterval, evidence_of
from .resampling import Floats, NoiseFloor, largest_by_chance
from .samples import Sample
from .scores import tied_points
from .shown import WorstUtility, tie_note
from .utilities.blocks import Utilities

AnyArray = TypeVar("AnyArray")
"""NumPy's arrays, or those of another library."""


@dataclass(frozen=True)
class Question:
    """What was asked, and of which points.

    Attributes:
        utilities, sample: the utility class, and the checked points.
        confidence: of each bound of the interval.
        repetitions, seed: number of draws of the labels for the floor, and their seed.
        example: an array of the kind that the errors shall have.
    """

    utilities: Utilities
    sample: Sample
    confidence: float
    repetitions: int
    seed: int
    example: Any


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationResult(Generic[AnyArray]):
    """The calibration error of a utility class, and what chance has to do with it.

    A part that does not apply, such as the floor of an accuracy, is no attribute of the record:
    asking for it raises AttributeError, with the reason.

    Args:
        name: what was measured.
        question: None if all parts that there are, are known.
    """

    name: str
    question: Question | None = None

    @classmethod
    def of_parts(cls, name: str, parts: Mapping[str, Any]) -> CalibrationResult[NDArray[Any]]:
        """Return the record of parts that are known, by their names."""
        result: CalibrationResult[NDArray[Any]] = CalibrationResult(name)
        vars(result).update(parts)
        return result

    @cached_property
    def errors(self) -> AnyArray:
        """UC of each utility (eq. 3.2): [m], of the kind of the probabilities."""
        asked = self._asked("errors")
        errors: AnyArray = like(self._errors, asked.example)
        return errors

    @cached_property
    def error(self) -> float:
        """The largest error over the class, in the unit of the utility."""
        self._asked("error")
        return float(self._errors.max())

    @cached_property
    def value(self) -> float:
        """The value of the metric: of a calibration error, `error`."""
        return self.error

    @cached_property
    def worst(self) -> WorstUtility:
        """The utility of largest error (eq. 3.5), from 0, and its worst interval (eq. 3.3)."""
        asked = self._asked("worst")
        points = asked.sample.forecast, asked.sample.outcomes
        return asked.utilities.worst_of(*points, self._errors)

    @cached_property
    def floor(self) -> NoiseFloor:
        """The error that a perfectly calibrated forecast has by chance (metrics/resampling.py)."""
        return NoiseFloor.of(self._drawn(self._asked("floor").repetitions), self.error)

    @cached_property
    def interval(self) -> CalibrationInterval:
        """Bounds on the true error, on fresh points (metrics/certificate.py).

        "With 95 % confidence no user of this class has an error above `.upper`."
        """
        asked = self._asked("interval")
        multipliers = asked.sample.multipliers(asked.seed, asked.confidence)
        evidence = evidence_of(
            asked.utilities,
            asked.sample,
            self._drawn(len(multipliers)),
            asked.confidence,
            multipliers,
        )
        return evidence.interval(asked.confidence)

    @cached_property
    def gain(self) -> ActingGain:
        """What a user gains who acts from another threshold on (metrics/acting.py)."""
        asked = self._asked("gain")
        return acting_gain(asked.utilities, asked.sample, asked.repetitions, asked.seed)

    @cached_property
    def floor_draws(self) -> Floats:
        """The metric under each draw of the labels, [R]; equal places of two forecasts pair."""
        return self._drawn(self._asked("floor_draws").repetitions)

    @cached_property
    def bootstrap_draws(self) -> Floats:
        """The metric under resampled points, [B], of a scorecard that resamples them."""
        raise self._lacks("bootstrap_draws")

    @cached_property
    def tied_share(self) -> float:
        """The share of the points that have several most probable classes.

        These are ranked in the order of the columns (Example 3.6), so another order may change the
        errors of utilities by rank.
        """
        forecast = self._asked("tied_share").sample.forecast
        return tied_points(forecast) / forecast.n

    @cached_property
    def _errors(self) -> Array:
        asked = self._asked("errors")
        return asked.utilities.errors(asked.sample.forecast, asked.sample.outcomes)[0]

    @cached_property
    def _of_chance(self) -> dict[int, Floats]:
        return {}

    def _drawn(self, repetitions: int) -> Floats:
        """Return the largest error under draws of the labels, which floor and interval share."""
        if repetitions not in self._of_chance:
            asked = self._asked("floor")
            draws = largest_by_chance(asked.utilities, asked.sample, repetitions, asked.seed)
            self._of_chance[repetitions] = draws
        return self._of_chance[repetitions]

    def _asked(self, part: str) -> Question:
        if self.question is None:
            raise self._lacks(part)
        return self.question

    def _lacks(self, part: str) -> AttributeError:
        return AttributeError(f"{self.name}: no {part} was measured", name=part, obj=self)

    def numbers(self) -> dict[str, float]:
        """Return the parts as one row of plain numbers by name; what does not apply is missing.

        value; mean, q95 and p_value of the floor; lower and upper bound; utility, low, high, sign
        and error of the worst interval; gain, threshold and act_from if the gain was asked for.
        """
        row = {"value": self.value}
        if hasattr(self, "floor"):
            row |= self.floor._asdict()
        if hasattr(self, "interval"):
            row |= {"lower": self.interval.lower, "upper": self.interval.upper}
        if hasattr(self, "worst"):
            row |= self.worst._asdict()
        if "gain" in vars(self):
            row |= {name: getattr(self.gain, name) for name in ("gain", "threshold", "act_from")}
        return row

    def __repr__(self) -> str:
        row = self.numbers()
        lines = [f"{self.name}: {self.value:.4f}"]
        if "mean" in row:
            floor = self.floor
            lines.append(
                f"  by chance    {floor.mean:.4f} on average, {floor.q95:.4f} at most in 95 % "
                f"(p = {floor.p_value:.2g})"
            )
        if "upper" in row:
            bounds = self.interval
            lines.append(f"  true error   {bounds.lower:.4f} to {bounds.upper:.4f}")
        if "utility" in row:
            worst = self.worst
            is_too = {1: "too high", -1: "too low", 0: "right"}[worst.sign]
            lines.append(
                f"  worst        utility {worst.utility}, predicted {worst.low:.4g} to "
                f"{worst.high:.4g}: {is_too}"
            )
        if "gain" in row:
            act_from = row["act_from"]
            way = f"acting from {act_from:.4g} on" if math.isfinite(act_from) else "never acting"
            lines.append(f"  gain         {row['gain']:.4f} by {way}")
        if self.question is not None and self.tied_share:
            lines.append(f"  {tie_note(self.tied_share)}")
        return "\n".join(lines)


def kind_example(values: Any) -> Any:
    """Return an empty array of the kind of `values` and on its device.

    It is no slice of `values`: a slice would keep all of them in memory, and torch's graph.
    """
    return like(np.empty(0), values)
