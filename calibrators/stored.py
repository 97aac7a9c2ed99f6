"""What a file of a calibrator must hold, so that a changed file is refused, not applied."""

import math
import unicodedata
from collections.abc import Mapping
from inspect import isabstract
from typing import Any, NamedTuple

import numpy as np

from utility_calibration import calibrators
from utility_calibration.metrics.errors import InputError

LARGEST = 1e100
"""Far beyond what a fit gives; the product of two such numbers is still finite."""


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
    "n_points_": Stored(low=1 / LARGEST),
    "kept_": Stored(("C",), low=0.0, high=1.0),
    "conditioning_": Stored((4,), low=-math.inf, high=math.inf),
}
"""The values that every calibrator has."""


def class_named(name: str, base: type[Any], path: object) -> type[Any]:
    """Return the class of the calibrator in the file `path`: `base`, or a class below it."""
    if name in dir(calibrators):  # importing a calibrator makes it a known subclass
        getattr(calibrators, name)
    kinds = {kind.__name__: kind for kind in _concrete(base)}
    if name not in kinds:
        message, fix = f"expected {' or '.join(sorted(kinds))}", "load it by Calibrator.load"
        if name not in dir(calibrators):
            message, fix = "no class of this package", "import the module that defines it first"
        raise InputError(f"holds a fitted {name}, {message}", file=path, fixes=fix)
    return kinds[name]


def _concrete(base: type[Any]) -> list[type[Any]]:
    """The classes at and below `base` that can be made."""
    kinds = [] if isabstract(base) else [base]
    for subclass in base.__subclasses__():
        kinds += _concrete(subclass)
    return kinds


def declared_by(kind: type[Any]) -> dict[str, Stored]:
    """The fitted values that a class and those above it declare, by name."""
    declared: dict[str, Stored] = dict(OF_ALL)
    for each in kind.__mro__:
        declared |= vars(each).get("learned", {})
    return declared


def of_any_size(kind: type[Any]) -> list[str]:
    """The declared values whose size the number of classes does not say, such as knots."""
    declared = declared_by(kind).items()
    return [name for name, rule in declared if not {*rule.shape} <= {"C", "P"}]


def problem_of(kind: type[Any], fitted: Mapping[str, Any], whole: bool) -> str | None:
    """What is wrong with the fitted values of a class by name, in a few words; None if nothing is.

    Values that are not declared must be finite. `whole`: absent classes were fitted, too.
    """
    declared = declared_by(kind)
    classes = int(fitted["n_features_in_"])
    present = np.asarray(fitted.get("present_", np.arange(classes)))
    sizes = {"C": classes, "P": classes if whole else present.size}
    declared["present_"] = Stored((present.size,), 0, classes - 1, "i", rises=True)
    for name, value in sorted(fitted.items()):
        rule, array = declared.get(name), np.asarray(value)
        if rule is not None:
            if array.dtype.kind not in rule.kinds + "iu" * ("f" in rule.kinds):
                return f"{name} is of type {array.dtype}"
            expected = []
            for size, length in zip(rule.shape, array.shape, strict=False):
                # Values with the same letter have the same length, which the first of them sets.
                expected.append(size if isinstance(size, int) else sizes.setdefault(size, length))
            if tuple(expected) != array.shape or len(rule.shape) != array.ndim:
                return f"{name} has the shape {list(array.shape)}"
            if rule.rises and bool((np.diff(array) <= 0).any()):
                return f"{name} does not rise"
        if array.dtype.kind == "U":
            letters = set("".join(array.ravel().tolist()))
            if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in letters):
                return f"{name} holds control characters"
        elif array.dtype.kind not in "iufb":
            return f"{name} is of type {array.dtype}"
        else:
            low, high = (-LARGEST, LARGEST) if rule is None else (rule.low, rule.high)
            numbers = array.astype(np.float64)
            if not bool(((numbers >= low) & (numbers <= high)).all()):
                return f"{name} holds values that no fit gives"
    return "classes_ has one twice" if len(np.unique(fitted["classes_"])) < classes else None
