"""The contents of a person's file by their purpose."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Given:
    """The contents of a file by their purpose; `pipeline/own/check.py` makes them logits.

    kind: logits, probabilities, or None if the file does not say. matrix: [n, C]; for two classes
    also [n] or [n, 1], of the class `single`. names: of the classes in the order of the columns,
    [C]; None: 0 … C-1. labels: [n], numbers of the columns, from 0 on. groups, clusters, weights:
    [n], if the file has them. splits: by name [n], the words calibration and test. tested:
    [splits, n], True for test points, if `splits` or a second file say so. notes: what was decided,
    for the person to read.
    """

    kind: str | None
    matrix: Any
    names: list[str] | None = None
    labels: Any = None
    groups: Any = None
    clusters: Any = None
    splits: dict[str, Any] = field(default_factory=dict)
    tested: NDArray[np.bool_] | None = None
    weights: Any = None
    single: int | None = None
    notes: tuple[str, ...] = ()
