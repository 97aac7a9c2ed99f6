"""The p-values of several errors of one forecast together: of its groups, or of own utilities.

Of twenty calibrated groups some error is beyond its own 95 % floor nearly always. So the errors of
all groups are compared with the largest one that chance makes among them. Each is measured in
standard deviations of its floor, and the largest is taken in every repetition of the redrawn
labels: a repetition has the same uniform numbers for all. The steps from the largest error down
are those of Westfall & Young (1993, algorithm 2.8): an error counts against itself and smaller
ones. At 5 % some calibrated group is found in at most 5 % of cases.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .score_rows import Scored, mean_draws

Floats = NDArray[np.float64]
EQUAL = 1e-9  # a smaller difference of standardized errors comes from rounding
PValues = dict[str, dict[str, float]]
"""By group ("": all points) and metric."""


def p_values_together(parts: Mapping[str, Sequence[Scored]], own: Collection[str]) -> PValues:
    """Return the p-values that hold over a family of errors; an error without a family has none.

    The groups of one metric are a family. So are the utilities of a user's own, in all groups.

    Args:
        parts: by group, or for "" of all points, the splits of one calibrator.
        own: the metrics of a user's own utilities.
    """
    metrics: dict[str, None] = {}
    for splits in parts.values():
        metrics |= dict.fromkeys(splits[0].record["noise_floor"])
    families = [[key] for key in metrics if key not in own]
    families.append([key for key in metrics if key in own])
    p_values: PValues = {}
    for family in families:
        for (group, key), p_value in _of_family(parts, family).items():
            p_values.setdefault(group, {})[key] = p_value
    return p_values


def _of_family(
    parts: Mapping[str, Sequence[Scored]], family: Sequence[str]
) -> dict[tuple[str, str], float]:
    """The p-values of one family by group and metric; none of a single error."""
    errors, floors = {}, {}
    for group, splits in parts.items():
        for key in family:
            draws = mean_draws(splits, f"floor_{key}")
            if draws is not None:
                values = [scored.record["metrics"][key] for scored in splits]
                errors[group, key] = float(np.mean(values))
                floors[group, key] = draws
    if len(errors) < 2:
        return {}
    p_values = step_down([*errors.values()], [*floors.values()])
    return dict(zip(errors, p_values.tolist(), strict=True))


def step_down(errors: Sequence[float], floors: Sequence[Floats]) -> Floats:
    """The p-values [K] of K errors together (Westfall & Young 1993, algorithm 2.8).

    Args:
        errors: [K], the errors.
        floors: [K] arrays of R draws of their noise floors each; draw r of all belongs together.
    """
    # Errors of different groups are compared in standard deviations. The observed error is among
    # the numbers that these are of, as each draw is: under the hypothesis all of them are alike.
    every = np.column_stack([errors, np.stack(floors)])
    mean, deviation = every.mean(axis=1), every.std(axis=1)
    scale = np.where(deviation > 0, deviation, 1.0)
    standardised = (every - mean[:, None]) / scale[:, None]
    observed, by_chance = standardised[:, 0], standardised[:, 1:]
    # An error is compared with itself and the smaller ones, from the largest error down.
    order = np.argsort(-observed, kind="stable")
    largest = np.maximum.accumulate(by_chance[order][::-1])[::-1]
    as_large = (largest >= observed[order, None] - EQUAL).sum(axis=1)
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate((1 + as_large) / (1 + by_chance.shape[1]))
    return p_values
