"""The contents of a person's file by their purpose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from .cells import Labels
from .message_text import cut_off


@dataclass(frozen=True)
class FilePoints:
    """The contents of a file by their purpose; `pipeline/own/check.py` makes them logits."""

    kind: str | None
    """logits or probabilities; None: the file does not say."""
    matrix: Any
    """[n, C], the answers; for two classes also [n] or [n, 1], of the class `single`."""
    names: list[str] | None = None
    """[C], the classes in the order of the columns; None: 0 … C-1."""
    labels: Any = None
    """[n], the number of the column of each point's label, from 0 on."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """The number of the column of each label, by the label's text."""
    columns: tuple[str, ...] = ()
    """The columns of a table from which `matrix` is."""
    order: NDArray[np.int64] | None = None
    """[C], the column of each class that was known before."""
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
    single: int | None = None
    """The class of the only column; None: there is a column per class."""
    notes: tuple[str, ...] = ()
    """What was decided, for the person to read."""


class KnownClasses(NamedTuple):
    """The classes of a calibrator, or of a file's first rows."""

    texts: list[str]
    """Their names in order, or their numbers as text."""
    is_text: bool
    """Whether they have names."""


@dataclass(frozen=True)
class Known:
    """What the first rows of a file say of all of them."""

    kind: str
    """logits or probabilities."""
    classes: KnownClasses
    """With these, columns are matched."""
    codes: Mapping[str, int]
    """Label text to class number. If the first rows use column numbers, later rows must, too."""
    seen: tuple[int, int]
    """The smallest and the largest column number among the first rows' labels."""
    weights: str = ""
    """The column or array of the weights; "": there are none. All rows must be like the first."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Those of the first rows, as `batches.Notes`."""

    def codes_of(self, labels: Labels) -> NDArray[np.int64]:
        """The class of each point; InputError: a label is no class of the first rows."""
        odd = [text for text in labels.texts if text not in self.codes]
        if odd:
            message = f"{cut_off(odd[0])} is no class of the first rows"
            fixes = ["name all classes: --classes NAME,NAME", "leave it out: --ignore-label"]
            raise InputError(message, field="labels", row=labels.row(odd[0]), fixes=fixes)
        numbers = [self.codes[text] for text in labels.texts]
        return np.array(numbers, np.int64)[labels.places]
