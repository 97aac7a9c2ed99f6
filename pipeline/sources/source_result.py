"""What every source returns: logits with labels, and where they come from."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SourceResult:
    """Logits of a benchmark with their labels, and where they come from.

    A field of single points is None where points have no such thing.
    """

    logits: NDArray[np.float32]
    """[n, C], before the softmax."""
    labels: NDArray[np.int64]
    """[n], in [0, C)."""
    details: dict[str, Any] = field(default_factory=dict)
    """It goes to the record, besides checksum and accuracy, so all of it must be valid in JSON.

    `source`, `model`, `preprocessing`, `origin`, optionally `class_names` (C names, in the order of
    the columns) and `warnings` (a list of lines that the stage also prints).
    """
    groups: NDArray[np.str_] | None = None
    """[n], the name of each point's group."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True for test points."""
    weights: NDArray[np.float64] | None = None
    """[n], >= 0."""
    clusters: NDArray[np.str_] | None = None
    """[n], the name of each point's cluster; points of one cluster depend on each other."""

    def part(self, rows: int) -> "SourceResult":
        """The points of `drawn_rows`."""
        drawn = drawn_rows(len(self.labels), rows)
        parts: dict[str, Any] = {}
        for name in ("logits", "labels", "groups", "weights", "clusters"):
            array = getattr(self, name)
            if array is not None:
                parts[name] = array[drawn]
        if self.tested is not None:
            parts["tested"] = self.tested[:, drawn]
        return replace(self, **parts)


def drawn_rows(n: int, rows: int | None) -> NDArray[np.intp]:
    """`rows` of n rows in their order, drawn at random from a fixed seed; None: all of them."""
    if rows is None or rows >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, rows, replace=False))
