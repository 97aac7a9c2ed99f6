"""What is not logits but would pass for them: probabilities, percentages, votes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from metrics.kernels.threads import row_blocks
from metrics.validation import COARSE_ROUNDING

NEARLY_ONE = 0.05
"""Rows that sum to one within this, of numbers in [0, 1], are no logits unless somebody says so."""

SAME_SUMS, ROUNDED_SUMS = 1e-3, 0.25
"""Rows of numbers >= 0 whose sums differ by this share are no logits; of whole numbers, at most."""

ENOUGH_ROWS = 10
"""Fewer rows may sum to the same by chance."""

MAJORITY = 0.6
"""Share of its row that the largest of some votes has, where a classifier is ever sure. Logits of a
trained network sum to zero; so made positive (quantised, say) that rows have a common sum, but the
largest is hardly ever more than half of it, for more than a few classes."""

FIRST = 8
"""Rows by which logits are told, so that telling costs them nothing."""


class Lookalike(NamedTuple):
    """Parts of a line: what is seen of some numbers, and how to make probabilities of them."""

    what: str
    step: str


def lookalike(matrix: Tensor) -> Lookalike | None:
    """What `matrix` [n, C] of real numbers looks like, if like anything but logits.

    It may be a map of a file: no more than some rows are held at a time.
    """
    first = [matrix[:FIRST].to(torch.float64)]
    if not len(matrix) or not all(
        bool((rows >= -COARSE_ROUNDING).all()) for rows in chain(first, _parts(matrix))
    ):
        return None
    sums = torch.cat([rows.sum(dim=1) for rows in _parts(matrix)])
    largest = max(float(rows.max()) for rows in _parts(matrix))
    gap = float((sums - 1).abs().max())
    if largest <= 1 + COARSE_ROUNDING and gap <= NEARLY_ONE:
        return Lookalike(
            f"these look like probabilities (in [0, 1], rows sum to one within {gap:.1g})",
            "",
        )
    if float((sums - 100).abs().max()) <= 100 * NEARLY_ONE:
        return Lookalike(
            "these look like percentages (rows sum to about 100)",
            "divide them by 100 and ",
        )
    if len(sums) >= ENOUGH_ROWS and (common := _common_sum(matrix, sums, largest)):
        return Lookalike(
            f"all rows sum to about {common:.6g} and nothing is negative, as of votes or "
            "probabilities times a number",
            "divide each row by its sum and ",
        )
    return None


def _parts(matrix: Tensor) -> Iterator[Tensor]:
    """Some rows after another, in float64."""
    for start, stop in row_blocks(len(matrix), matrix.shape[1]):
        yield matrix[start:stop].to(torch.float64)


def _common_sum(matrix: Tensor, sums: Tensor, largest: float) -> float:
    """What rows of votes or of scaled probabilities sum to; 0 where they differ or no class wins.

    Whole numbers may be rounded, each by less than one, which leaves sums within C.
    """
    common = float(sums.median())
    if not math.isfinite(common) or largest < MAJORITY * common:
        return 0.0
    slack = SAME_SUMS * common
    if all(bool((rows == rows.round()).all()) for rows in _parts(matrix)):
        slack = max(slack, min(matrix.shape[1], ROUNDED_SUMS * common))
    return common if float((sums - common).abs().max()) <= slack else 0.0
