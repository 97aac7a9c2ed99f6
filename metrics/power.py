"""How many points of a class it takes to see that its forecasts are wrong.

For a rare class, its own error drowns in the noise of the other classes or of its few positives.
"""

from __future__ import annotations

import math
from statistics import NormalDist

RELATIVE_ERROR = 0.5
"""The share of a class's frequency by which its forecasts are wrong: claimed 1.5 or .5 times."""
POWER = 0.8
"""Share of samples in which such an error should exceed the noise floor."""


def fewest_positives(points: float, floor: float, relative_error: float = RELATIVE_ERROR) -> int:
    """Return how many points of a class are needed to find a relative error in 80 % of samples.

    With k positives among n points, an error δ times the class's frequency makes a UC of about
    δ k/n, with a standard deviation of √k/n. It exceeds the floor f in 80 % of the samples if
    δ k >= n f + .84 √k. With fewer positives, a "within noise" does not speak for the class.

    Args:
        points: n, the points that are tested.
        floor: f, the 95 % quantile of the noise floor of U_CWE.
        relative_error: δ.
    """
    z = NormalDist().inv_cdf(POWER)
    root = (z + math.sqrt(z**2 + 4 * relative_error * points * floor)) / (2 * relative_error)
    return math.ceil(root**2)
