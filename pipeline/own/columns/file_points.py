"""The labelled points of a person's file, as the rest of the pipeline takes them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FilePoints:
    """The points of a file; points/check.py checks them."""

    kind: str | None
    """What the file has, logits or probabilities; None: its columns are not known."""
    matrix: Any
    """[n, C] in float32, logits or logarithms of probabilities; None: as above."""
    names: list[str] | None = None
    """[C], the classes in the order of the columns; None: 0 … C-1."""
    labels: Any = None
    """[n], the number of the column of each point's label, from 0 on."""
    groups: Any = None
    """[n], if the file has them."""
    clusters: Any = None
    """[n], if the file has them."""
    splits: dict[str, Any] = field(default_factory=dict)
    """By name of the column or array: [n], the words calibration and test."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True for test points, if `splits` or a second file say so."""
    weights: Any = None
    """[n], if the file has them."""
    notes: tuple[str, ...] = ()
    """What was decided, for the person to read."""
