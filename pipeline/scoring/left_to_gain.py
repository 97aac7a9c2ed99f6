"""What any recalibration could still gain on the test points of a unit, in nats."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..harness.parallel import all_called
from ..harness.units import Unit
from .held_out import held_out

if TYPE_CHECKING:
    from utility_calibration.calibrators.recalibration import RecalibrationGain

LARGEST = 500_000  # numbers n x C of a test part; more take longer than all else in a report
FEWEST = 100  # test points


def left_to_gain(units: Sequence[Unit], methods: Sequence[str]) -> dict[str, RecalibrationGain]:
    """By method what recalibration gains on the first split; {} where that cannot be estimated.

    Rows that do not sum to one are left out, and so are all methods where points have weights or
    clusters, because the interval takes points as independent.
    """
    first = {unit.calibrator: unit for unit in reversed(units)}
    calls = {method: partial(_gain_of, first[method]) for method in methods}
    gains = all_called("What is left", calls, units[0].settings.jobs)
    return {method: gain for method, gain in gains.items() if gain is not None}


def _gain_of(unit: Unit) -> RecalibrationGain | None:
    test = held_out(unit)
    fits = len(test.labels) >= FEWEST and test.probabilities.size <= LARGEST
    are_independent = test.weights is None and test.clusters is None
    if not (fits and are_independent and test.rows_sum_to_one):
        return None
    # It imports half of the calibrators, which a quick look does not need.
    from utility_calibration.calibrators.recalibration import recalibration_gain

    with warnings.catch_warnings(action="ignore"):  # a fold may lack a class
        return recalibration_gain(test.probabilities, test.labels)
