"""The contents of a person's file by their purpose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from .cells import Labels
from .told import cut_off


@dataclass(frozen=True)
class Given:
    """The contents of a file by their purpose; `pipeline/own/check.py` makes them logits.

    kind: logits, probabilities, or None if the file does not say. matrix: [n, C]; for two classes
    also [n] or [n, 1], of the class `single`. names: of the classes in the order of the columns,
    [C]; None: 0 … C-1. labels: [n], numbers of the columns, from 0 on; codes: these by the label's
    text. order: the columns of known classes. groups, clusters, weights: [n], if the file has them.
    splits: by name [n], the words calibration and test. tested: [splits, n], True for test points,
    if `splits` or a second file say so. notes: what was decided, for the person to read.
    """

    kind: str | None
    matrix: Any
    names: list[str] | None = None
    labels: Any = None
    codes: Mapping[str, int] = field(default_factory=dict)
    order: NDArray[np.int64] | None = None
    groups: Any = None
    clusters: Any = None
    splits: dict[str, Any] = field(default_factory=dict)
    tested: NDArray[np.bool_] | None = None
    weights: Any = None
    single: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """What the first rows of a file say of all: the kind of the answers, and the classes.

    classes: as columns are matched with them. codes: the class of each label, as text: the numbers
    of columns where the first rows have these, also if the columns have names. seen: the smallest
    and the largest number of a column among the first rows' labels. weights: the column or array
    of the weights in the first rows, "" if they have none; all rows must be like them.
    notes: those of the first rows, as `batches.Notes`.
    """

    kind: str
    classes: Labels
    codes: Mapping[str, int]
    seen: tuple[int, int]
    weights: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def codes_of(self, labels: Labels) -> NDArray[np.int64]:
        """The class of each point; InputError: a label is no class of the first rows."""
        if odd := [text for text in labels.texts if text not in self.codes]:
            told = f"{cut_off(odd[0])} is no class of the first rows"
            fixes = ["name all classes: --classes NAME,NAME", "leave it out: --ignore-label"]
            raise InputError(told, field="labels", row=labels.row(odd[0]), fixes=fixes)
        return np.array([self.codes[text] for text in labels.texts], np.int64)[labels.places]
