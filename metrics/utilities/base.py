"""The base of utility classes: what a caller asks of them.

To add a utility class of your own, define its `count` and `outcome_utilities`. This is enough;
override `blocks` only to make it faster (`blocks.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from inspect import signature
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import OtherArray, like
from ..keywords import PointOptions, SampleOptions
from ..option_checks import check_confidence, check_whole
from ..result import CalibrationResult, Question, kind_example
from ..samples import sample_of
from ..scores import checked
from .blocks import Utilities
from .content import content_of


class UtilityClass(Utilities):
    """A finite set of m utilities u(p, e_j), numbered from 0: the base of a class of your own.

    Such a class has two methods: `count` returns m, and `outcome_utilities` returns u⃗ of one
    utility (eq. 3.1), float64 [n, C]. Values outside [-1, 1] also need the method `bounds`. Errors
    are in the unit of u. Two objects are equal if they are of one class and hold equal values; then
    they have equal errors.

    >>> class Bet(UtilityClass):
    ...     def count(self, classes):
    ...         return 1
    ...     def outcome_utilities(self, forecast, index):
    ...         return forecast.probabilities * 0 + [1, 0, -1]
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> Bet().calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.375])

    Raises:
        InputError: of its methods; what each refuses stands there.
    """

    names: Sequence[str] = ()
    """What a report calls each utility; without names, it counts users."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _same(vars(self), vars(other))

    def __hash__(self) -> int:
        return hash((type(self), *vars(self)))  # not the values, which may be large

    def digest(self) -> str:
        """Return a text that equal utilities share in all programs of one version of Python."""
        content = content_of((type(self), vars(self)))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        attributes, arguments = vars(self), []
        # An attribute has the name of its argument, or else its place.
        for parameter, value in zip(signature(type(self)).parameters.values(), attributes.values()):
            value = attributes.get(parameter.name, value)
            if not _same(value, parameter.default):
                arguments.append(f"{parameter.name}={_text(value)}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    @overload
    def calibration_errors(
        self,
        probabilities: OtherArray,
        labels: ArrayLike | OtherArray,
        **options: Unpack[PointOptions],
    ) -> OtherArray: ...
    @overload
    def calibration_errors(
        self, probabilities: ArrayLike, labels: ArrayLike, **options: Unpack[PointOptions]
    ) -> NDArray[np.float64]: ...
    def calibration_errors(
        self, probabilities: Any, labels: Any, **options: Unpack[PointOptions]
    ) -> Any:
        """Return UC of each utility (eq. 3.2): [m], of the kind of `probabilities`.

        The largest one is UC of the class (eq. 3.5).

        Args:
            probabilities, labels: as in `accuracy`, with the same errors.
            **options: as in `accuracy`.
        """
        forecast, outcomes = checked(probabilities, labels, **options)
        return like(self.errors(forecast, outcomes)[0], probabilities)

    @overload
    def evaluate(
        self,
        probabilities: OtherArray,
        labels: ArrayLike | OtherArray,
        *,
        confidence: float = 0.95,
        repetitions: int = 400,
        seed: int = 0,
        **options: Unpack[SampleOptions],
    ) -> CalibrationResult[OtherArray]: ...
    @overload
    def evaluate(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        confidence: float = 0.95,
        repetitions: int = 400,
        seed: int = 0,
        **options: Unpack[SampleOptions],
    ) -> CalibrationResult[NDArray[np.float64]]: ...
    def evaluate(
        self,
        probabilities: Any,
        labels: Any,
        *,
        confidence: float = 0.95,
        repetitions: int = 400,
        seed: int = 0,
        **options: Unpack[SampleOptions],
    ) -> Any:
        """Return errors, worst interval, floor, interval and gain; each is computed when asked for.

        >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
        >>> result = TopK().evaluate(p, labels=[0, 1, 2, 1])
        >>> round(result.error, 3), result.worst.utility, round(result.worst.high, 3)
        (0.15, 1, 0.9)

        Args:
            probabilities, labels: [n, C] and [n], as in `accuracy`; for the interval, points that
                were not used for fitting. Rows that do not sum to one are refused.
            confidence: 1 - α of each bound of the interval.
            repetitions, seed: number of draws of the labels for floor and gain, and the seed of
                all that is drawn.
            **options: those of `SampleOptions`: as in `accuracy`; `clusters` [n], text or numbers,
                as points of one cluster need not be independent; `points` [n], the number of each
                point in the whole data set.

        Returns:
            The record (metrics/result.py), in the unit of the utilities: `.errors` [m], `.error`,
            `.worst`, `.floor`, `.interval`, `.gain`.

        Raises:
            InputError: as `accuracy`; and a confidence so high for so many points that the draws
                that it needs do not fit into 2 GiB.
        """
        check_confidence(confidence)
        check_whole(repetitions, "repetitions", 1)
        question = Question(
            self,
            sample_of(probabilities, labels, **options),
            confidence,
            repetitions,
            seed,
            kind_example(probabilities),
        )
        return CalibrationResult(repr(self), question)


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "shape") or hasattr(other, "shape"):  # arrays of a user's own class
        return type(one) is type(other) and np.array_equal(one, other)
    if type(one) is type(other) and isinstance(one, list | tuple):  # `==` fails for lists of arrays
        return len(one) == len(other) and all(map(_same, one, other))
    if type(one) is type(other) and isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _text(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"<{' × '.join(map(str, value.shape))} numbers>"
    return getattr(value, "__qualname__", None) or repr(value)
