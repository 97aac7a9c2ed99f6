"""The answers of a classifier as a person's file has them, before anything makes them logits."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Answers(NamedTuple):
    """The answers in some columns of a table, or in one array."""

    matrix: Any
    """[n, C]; of a single column also [n] or [n, 1]."""
    name: str
    """The array, or the first of the columns: what messages call the answers."""
    kind: str | None = None
    """logits or probabilities; None: the file does not say."""
    names: list[str] | None = None
    """[C], the classes in the order of the columns; None: their numbers, 0 … C-1."""
    single: int | None = None
    """The class of the only column; None: each class has a column."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return 2 if self.single is not None else int(self.matrix.shape[1])

    @property
    def class_names(self) -> list[str]:
        """The classes in the order of the columns, their numbers where they have no names."""
        return self.names or [str(number) for number in range(self.n_classes)]

    def single_values(self) -> NDArray[np.float64]:
        """The numbers [n] of the only column."""
        return np.asarray(self.matrix, dtype=np.float64).reshape(-1)
