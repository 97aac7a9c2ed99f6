"""What the fitted values in a file must be, so that a changed file is refused, not applied."""

import math
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

LARGEST = 1e300


class Stored(NamedTuple):
    """One fitted value: an array, or a number where `shape` is empty.

    shape: sizes; letters that are equal are equal sizes, C is the number of classes, P that of the
    classes that were fitted. kinds: of NumPy's types, "f" also admits whole numbers. Numbers lie
    from low to high, and each is larger than the one before if they rise.
    """

    shape: tuple[int | str, ...] = ()
    low: float = -LARGEST
    high: float = LARGEST
    kinds: str = "f"
    rises: bool = False


Learned = Mapping[str, Stored]
POSITIVE = Stored(low=1 / LARGEST)
SHARE = Stored(low=0.0, high=1.0)
OF_ALL: Learned = {
    "classes_": Stored(("C",), kinds="iU"),
    "feature_names_in_": Stored(("C",), kinds="U"),
    "n_features_in_": Stored(low=2, kinds="i"),
    "present_": Stored(("P",), low=0, kinds="i", rises=True),
    "shares_": Stored(("C",), low=0.0, high=1.0),
    "prior_": Stored(("C",), low=0.0, high=1.0),
    "conditioning_": Stored((4,), low=-math.inf, high=math.inf),
}
"""The values that every calibrator has."""


def problem_of(fitted: Mapping[str, Any], declared: Learned, sizes: dict[str, int]) -> str | None:
    """What is wrong with the fitted values by name, in a few words; None if nothing is.

    `sizes` are those that are known by their letter. Values that are not declared must be finite.
    """
    for name, value in sorted(fitted.items()):
        held, array = declared.get(name), np.asarray(value)
        if held is not None:
            if array.dtype.kind not in held.kinds + "iu" * ("f" in held.kinds):
                return f"{name} is of type {array.dtype}"
            shape = tuple(
                size if isinstance(size, int) else sizes.setdefault(size, found)
                for size, found in zip(held.shape, array.shape, strict=False)
            )
            if shape != array.shape or len(held.shape) != array.ndim:
                return f"{name} has the shape {list(array.shape)}"
            if held.rises and bool((np.diff(array) <= 0).any()):
                return f"{name} does not rise"
        if array.dtype.kind == "U":
            letters = {letter for text in array.ravel().tolist() for letter in text}
            if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in letters):
                return f"{name} holds control characters"
        elif array.dtype.kind not in "iufb":
            return f"{name} is of type {array.dtype}"
        else:
            low, high = (-LARGEST, LARGEST) if held is None else (held.low, held.high)
            numbers = array.astype(np.float64)
            if not bool(((numbers >= low) & (numbers <= high)).all()):
                return f"{name} holds values that no fit gives"
    return None
