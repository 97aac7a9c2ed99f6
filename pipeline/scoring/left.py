"""What any recalibration could still gain on the test points of a unit, in nats."""

import warnings
from collections.abc import Sequence

from utility_calibration.calibrators.recalibration import RecalibrationGain, recalibration_gain

from ..harness.units import Unit
from .held_out import held_out

LARGEST = 500_000  # numbers n x C of a test part; more take longer than all else in a report
FEWEST = 100  # test points


def left_to_gain(units: Sequence[Unit], methods: Sequence[str]) -> dict[str, RecalibrationGain]:
    """By method what recalibration gains on the first split; {} where that cannot be estimated.

    Rows that do not sum to one are left out, and so are all methods where points have weights or
    clusters, because the interval takes points as independent.
    """
    gains = {}
    first = {unit.calibrator: unit for unit in reversed(units)}
    for method in methods:
        test = held_out(first[method], "cpu")
        fits = len(test.labels) >= FEWEST and test.probabilities.numel() <= LARGEST
        if fits and test.rows_sum_to_one and test.weights is None and test.clusters is None:
            with warnings.catch_warnings(action="ignore"):  # a fold may lack a class
                gains[method] = recalibration_gain(test.probabilities, test.labels)
    return gains
