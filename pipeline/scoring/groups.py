"""Groups of points, where the logits' file names them: which are large enough, and their scores.

The calibrators are those of all points; their test points are scored group by group, so that noise
floors, intervals and worst intervals are those of the group's size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.harness.units import Settings
from pipeline.scoring.held_out import HeldOut, numbers_of, scored
from pipeline.scoring.tidy import Scored

LEAST = 20
"""Test points that a group needs in every split to be scored."""


def large_enough(groups: NDArray[np.str_], tested: Sequence[NDArray[np.int64]]) -> list[str]:
    """The groups with LEAST test points in every split, in the order of their names.

    Args:
        groups: [n], the group of each point; empty where the file names none.
        tested: the numbers of each split's test points.
    """
    names: list[str] = np.unique(groups).tolist()
    return [name for name in names if min((groups[t] == name).sum() for t in tested) >= LEAST]


def scored_split(settings: Settings, split: int, test: HeldOut) -> Scored:
    """The scores of one group's test points in one split."""
    card = scored(settings, test)
    record = {**numbers_of(card), "n_test": len(test.labels)}
    return Scored(split, record, card.ecdf | card.draws)
