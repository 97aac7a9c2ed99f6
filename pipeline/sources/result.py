"""The result of every source."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.errors import MissingResource as MissingResource
from metrics.errors import reason_of as reason_of


@dataclass(frozen=True)
class SourceResult:
    """Logits of a benchmark with their labels, and where they come from.

    `details` goes to the record, besides checksum and accuracy: `source`, `model`, `preprocessing`,
    `origin`, optionally `class_names` (C names, in the order of the columns) and `warnings` (a list
    of lines that the stage also prints). All values must be valid in JSON. The other fields are
    None where points have no groups, splits, weights, or clusters of points that depend on each
    other.
    """

    logits: NDArray[np.float32]  # [n, C], before the softmax
    labels: NDArray[np.int64]  # [n], in [0, C)
    details: dict[str, Any] = field(default_factory=dict)
    groups: NDArray[np.str_] | None = None  # [n], the name of each point's group
    tested: NDArray[np.bool_] | None = None  # [splits, n], True for test points
    weights: NDArray[np.float64] | None = None  # [n], >= 0
    clusters: NDArray[np.str_] | None = None  # [n], the name of each point's cluster
