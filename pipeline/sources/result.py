"""The result of every source, and the error for something that is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MissingResource(RuntimeError):
    """A missing file, package or download. One line: what is missing, how to get it."""


def reason_of(error: BaseException) -> str:
    """A library's message, perhaps of many lines, as one line of at most 160 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


@dataclass(frozen=True)
class SourceResult:
    """Logits of a benchmark with their labels, and where they come from.

    `details` goes to the record, besides checksum and accuracy: `source`, `model`, `preprocessing`,
    `origin`, optionally `class_names` (C names, in the order of the columns) and `warnings` (a list
    of lines that the stage also prints). All values must be valid in JSON.
    """

    logits: NDArray[np.float32]
    """[n, C], before the softmax."""
    labels: NDArray[np.int64]
    """[n], in [0, C)."""
    details: dict[str, Any] = field(default_factory=dict)
    groups: NDArray[np.str_] | None = None
    """[n], the name of each point's group, if the points have groups."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True for test points, False for calibration points, if there are splits."""
    weights: NDArray[np.float64] | None = None
    """[n], >= 0, if the points have weights."""
    clusters: NDArray[np.str_] | None = None
    """[n], the name of the cluster of points that depend on each other, if there are clusters."""
