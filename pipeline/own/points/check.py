"""Check the points of a person's file: what each point has, and what all of them show together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import check_weights

from ..columns.file_points import FilePoints
from ..columns.rules import first_that_holds
from ..reading.cells import text_of
from ..rows.splits import tested
from ..words.message_text import kept
from .copies import note_on_copies, without_copies, without_weight_0
from .point_notes import NOTES
from .point_rules import POINTS_ARE_NO_FORECAST

MOST_GROUPS = 100
"""Largest number of groups in one file; each gets tables of its own."""


def checked(
    points: FilePoints, mistakes: list[InputError], is_distinct: bool = False
) -> FilePoints:
    """The points of a file, checked as a whole, with notes for the person.

    `mistakes` are known. InputError says all that is wrong at once. is_distinct: whether rows that
    are equal count once (--distinct).
    """
    points = with_checked_roles(points, mistakes)
    if is_distinct:
        points = without_copies(points)
    points = without_weight_0(points)
    if points.splits:
        points = replace(points, tested=np.array([*points.splits.values()]))
    # The rules look at points that count, so copies and weights of 0 are out by now.
    rule = first_that_holds(POINTS_ARE_NO_FORECAST, points)
    if rule is not None:
        raise rule.error(points)
    # Names that are the numbers of the columns say nothing, and pages would repeat them.
    if points.names == [str(number) for number in range(points.matrix.shape[1])]:
        points = replace(points, names=None)
    notes = [note for note_on in NOTES for note in note_on(points)]
    return replace(points, notes=(*points.notes, *notes, *note_on_copies(points)))


def with_checked_roles(points: FilePoints, mistakes: list[InputError]) -> FilePoints:
    """The same with checked splits, weights, groups and clusters.

    Raises:
        InputError: all `mistakes`, also those that were known before.
    """
    n = len(points.labels)
    checks: dict[str, Callable[[Any], Any]] = {
        "splits": lambda splits: {name: tested(name, words, n) for name, words in splits.items()},
        "weights": lambda weights: check_weights(weights, n, "weight"),
        "groups": lambda groups: _groups(groups, n),
        "clusters": lambda clusters: text_of(clusters, n, "clusters"),
    }
    for field, check in checks.items():
        with kept(mistakes):
            values = getattr(points, field)
            if values is not None:
                changed: Any = {field: check(values)}
                points = replace(points, **changed)
    if mistakes:
        raise InputError.of_all(mistakes)
    return points


def _groups(values: Any, n: int) -> NDArray[np.str_]:
    names = text_of(values, n, "groups")
    count = len(np.unique(names))
    if count > MOST_GROUPS:
        message = f"{count} different names for {n} cases, at most {MOST_GROUPS}"
        fix = "give the group that a case belongs to, not its number"
        raise InputError(message, field="groups", fixes=fix)
    return names
