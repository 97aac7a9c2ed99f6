"""Equal values in a row of answers: which class then comes first is no answer of the classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..words.message_text import some_of

MOST_VALUES = 2_000_000
"""Of the rows that are looked at, which are spread over all."""
MANY = 0.5
"""Share of rows with equal values that is noted even if the largest one is always single."""


def note_on_ties(matrix: NDArray[Any], names: Sequence[str]) -> list[str]:
    """A note on the share of rows [n, C] in which classes tie, if that may change results.

    Metrics rank equal classes by the order of the `names`. Impossible classes (-inf) do not count.
    """
    step = max(1, matrix.size // MOST_VALUES)
    rows = np.sort(matrix[::step], axis=1)
    are_equal = (rows[:, 1:] == rows[:, :-1]) & np.isfinite(rows[:, 1:])
    share_at_top = are_equal[:, -1].mean()
    share = are_equal.any(axis=1).mean()
    if not share_at_top and share < MANY:
        return []
    several, equal = f"{100 * share_at_top:.3g}", f"{100 * share:.3g}"
    return [
        f"{several} % of the rows have several largest values, {equal} % have equal ones: they are "
        f"ranked in the order of the classes ({some_of(names)}); another order may change results"
    ]
