"""What every source returns, and how it says that something is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class MissingResource(RuntimeError):
    """A file, package or download that is not there. One line: what is missing, how to get it."""


def reason_of(error: BaseException) -> str:
    """A library's message, perhaps of many lines, in one of readable length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


@dataclass(frozen=True)
class SourceResult:
    """Logits of a benchmark with their labels, and where they come from.

    `details` is what the record says beside checksum and accuracy: `source`, `model`,
    `preprocessing`, `origin`, optionally `class_names` (C names, in the order of the columns) and
    `warnings` (a list of lines that the stage also prints). It has to survive JSON.
    """

    logits: NDArray[np.float32]
    """[n, C], before the softmax."""
    labels: NDArray[np.int64]
    """[n], in [0, C)."""
    details: dict[str, Any] = field(default_factory=dict)
    groups: NDArray[np.str_] | None = None
    """[n], the name of each point's group, where the points have groups."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True where a point tests and False where it calibrates, where that is given."""
    weights: NDArray[np.float64] | None = None
    """[n], >= 0, where the points have weights."""


@dataclass(frozen=True)
class SimilarityResult:
    """How alike the classes of a benchmark are, for U_w2v, and where that comes from.

    `details` goes to the record, its `line` to the person waiting.
    """

    matrix: NDArray[np.float64]
    """[C, C]."""
    details: dict[str, Any] = field(default_factory=dict)


class Progress(Protocol):
    """How a source reports its progress; calling it often costs nothing."""

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """`done` of `total` pieces (rows, batches, bytes) of `what` are finished."""
