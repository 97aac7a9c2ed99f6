"""The base of utility classes: m utilities u(p, e_j), evaluated in blocks.

A utility maps a forecast p and an outcome e_j to a number, usually in [-1, 1]. Its vector
u⃗(p) = (u(p, e_1), …, u(p, e_C)) gives the predicted utility v = <p, u⃗(p)> (eq. 3.1) and
the realized utility u⃗(p)[y]. To add a utility class of your own, define its `count` and
`outcome_utilities`. This is enough; override `blocks` only to make it faster.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, OtherArray, as_array, like
from ..errors import InputError
from ..forecast import Forecast, Outcomes
from ..kernels.grid import on_grid, power_above
from ..kernels.prefix_range import Orders, prefix_range
from ..keywords import PointOptions, SampleOptions
from ..option_checks import check_confidence, check_whole
from ..scores import checked
from ..shown import WorstUtility
from ..uc import first_largest, worst_interval
from ..validation import check_numbers

if TYPE_CHECKING:
    from ..result import CalibrationResult

BLOCK_BYTES = 64 << 20
"""Largest size of a block of predicted utilities [b, n], unless `FEWEST_ROWS` rows need more."""
FEWEST_ROWS = 64
"""Smallest number of utilities in a block (if the class has so many): small products are slow."""


CELL = 2.0**-40
"""Predictions are rounded to this share of the largest payoff."""


class Block(NamedTuple):
    """Utilities of a class on a forecast, as `prefix_range` takes them: u = payoffs[:, codes]."""

    predicted: Array  # [b, n]
    payoffs: Array  # [b, L]
    codes: Array  # [R, n]
    orders: Orders | None = None  # what blocks with the same predictions share
    is_tied: bool = False  # whether predictions that differ only by rounding are equal already


class UtilityClass(ABC):
    """A finite set of utilities, numbered from 0.

    Two are equal if they are of one class and hold equal values; then they have equal errors.

    >>> class Bet(UtilityClass):
    ...     def count(self, classes):
    ...         return 1
    ...     def outcome_utilities(self, forecast, index):
    ...         return forecast.probabilities * 0 + [1, 0, -1]
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> Bet().calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.375])
    """

    names: Sequence[str] = ()
    """What a report calls each utility; without names, it counts users."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        held, others = vars(self), vars(other)
        return held.keys() == others.keys() and all(_same(held[k], others[k]) for k in held)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self)))  # not the values, which may be large

    def digest(self) -> str:
        """Return a text that equal utilities share in all programs; functions count by name."""
        content = f"{type(self).__qualname__} {_content(vars(self))}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        held, shown = vars(self), []
        for parameter, value in zip(signature(type(self)).parameters.values(), held.values()):
            value = held.get(parameter.name, value)
            if not _same(value, parameter.default):
                shown.append(f"{parameter.name}={_text(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @abstractmethod
    def count(self, classes: int) -> int:
        """Return the number m of utilities; `InputError` if they are for other than C `classes`."""

    @abstractmethod
    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        """Return u⃗ of utility `index`: float64 [n, C], column j for the outcome e_j."""

    def blocks(
        self, forecast: Forecast, outcomes: Outcomes, part: slice = slice(None)
    ) -> Iterator[Block]:
        """Yield the utilities of `part` in order. This general form yields one at a time."""
        n, classes = forecast.n, forecast.classes
        offsets = np.arange(n) * classes
        for index in range(self.count(classes))[part]:
            vectors = as_array(self.outcome_utilities(forecast, index)).astype(np.float64)
            predicted = (forecast.probabilities * vectors).sum(axis=1)
            yield Block(predicted[None], vectors.reshape(1, -1), outcomes.labels + offsets)

    def alike(self, forecast: Forecast) -> Array | None:
        """Return for each point the first point that must have equal predictions: [n], or None."""
        return forecast.alike

    def tied_blocks(
        self, forecast: Forecast, outcomes: Outcomes, part: slice = slice(None)
    ) -> Iterator[Block]:
        """Yield `blocks` with equal predictions where they differ only by rounding.

        An interval could separate points whose predictions differ in the last bit, such as sums of
        all probabilities, and each processor others. So predictions are rounded to 2^-40 of the
        largest payoff. Equal forecasts may still lie on two sides of a cell's border, because
        matrix products sum the points at the edges of their tiles in another order.
        """
        for block in self.blocks(forecast, outcomes, part):
            if block.is_tied:
                yield block
            else:
                predicted = self.tied(forecast, block.predicted, block.payoffs)
                yield block._replace(predicted=predicted)

    def tied(self, forecast: Forecast, predicted: Array, payoffs: Array) -> Array:
        """Return predictions [b, n] for `payoffs` [b, L] as `tied_blocks` gives them."""
        largest = np.abs(payoffs).max(axis=1, keepdims=True)
        # What a product just made is rounded in place: fresh memory takes longer than the rounding.
        # A view may be of the forecast itself, which stays as it is.
        out = predicted if predicted.flags.owndata and predicted.flags.writeable else None
        rounded = on_grid(predicted, CELL * power_above(largest), out)
        alike = self.alike(forecast)
        return rounded if alike is None else np.take(rounded, alike, axis=1)

    def spread(self, block: Block) -> Array:
        """Return the range ρ of each utility: [b]; override it if payoffs are not all values."""
        return block.payoffs.max(axis=1) - block.payoffs.min(axis=1)

    def bounds(self, classes: int) -> Array:
        """Return the smallest and the largest value of each utility: [m, 2]; [-1, 1] in general."""
        return np.tile([-1.0, 1.0], (self.count(classes), 1))

    def predicted_and_realized(
        self, forecast: Forecast, outcomes: Outcomes, index: int
    ) -> tuple[Array, Array]:
        """Return v and u of utility `index` under the first draw of the labels: [n] each."""
        block = next(self.tied_blocks(forecast, outcomes, slice(index, index + 1)))
        return block.predicted[0], block.payoffs[0, block.codes[0]]

    def errors(self, forecast: Forecast, outcomes: Outcomes) -> Array:
        """Return UC of every utility under every draw of the labels: float64 [R, m]."""
        errors = []
        for block in self.tied_blocks(forecast, outcomes):
            ranges, _ = prefix_range(*block[:3], weights=outcomes.factors, orders=block.orders)
            errors.append(ranges / outcomes.size)
        return np.concatenate(errors, axis=1)

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
        """Return UC of each utility of the class (eq. 3.2): [m], of the kind of `probabilities`.

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
        population_weights: tuple[float, float] | None = None,
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
        population_weights: tuple[float, float] | None = None,
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
        population_weights: tuple[float, float] | None = None,
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
            population_weights: the mean and the largest weight in the population, for
                `interval.upper_finite`.
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
        # What draws labels takes as long to import as all the rest, and errors do not need it.
        from ..result import CalibrationResult, Question, kind_example
        from ..samples import sample_of

        check_confidence(confidence)
        check_whole(repetitions, "repetitions", 1)
        question = Question(
            self,
            sample_of(probabilities, labels, **options),
            confidence,
            repetitions,
            seed,
            population_weights,
            kind_example(probabilities),
        )
        return CalibrationResult(repr(self), question)

    def worst_of(self, forecast: Forecast, outcomes: Outcomes, errors: Array) -> WorstUtility:
        """Return the utility of the largest of `errors` [m], and its worst interval (eq. 3.5).

        The errors are those under the first draw of `outcomes`.
        """
        index = first_largest(errors)
        predicted, realized = self.predicted_and_realized(forecast, outcomes, index)
        weights = None if outcomes.weights is None else outcomes.weights[0]
        interval = worst_interval(predicted, realized, sample_weight=weights)
        return WorstUtility(index, interval.low, interval.high, interval.sign, interval.error)


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "shape") or hasattr(other, "shape"):  # arrays of a user's own class
        return type(one) is type(other) and np.array_equal(one, other)
    if type(one) is type(other) and isinstance(one, list | tuple):  # `==` fails for lists of arrays
        return len(one) == len(other) and all(map(_same, one, other))
    if type(one) is type(other) and isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _content(value: Any) -> str:
    """Return a text that is equal for equal values, and for no others that a class may hold."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{value.dtype} {value.shape} {digest}"
    if isinstance(value, dict):
        return repr([(key, _content(entry)) for key, entry in value.items()])
    if isinstance(value, list | tuple):
        return repr([_content(entry) for entry in value])
    return getattr(value, "__qualname__", None) or repr(value)


def _text(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"<{' × '.join(map(str, value.shape))} numbers>"
    return getattr(value, "__qualname__", None) or repr(value)


def equal_blocks(utilities: range, n: int, most: int | None = None) -> Iterator[slice]:
    """Yield blocks of `utilities` for n points, of equal size because small blocks are slow."""
    rows = max(FEWEST_ROWS, BLOCK_BYTES // (8 * n))
    count = -(-len(utilities) // (rows if most is None else min(rows, most)))
    size = -(-len(utilities) // count)
    for start in range(utilities.start, utilities.stop, size):
        yield slice(start, min(utilities.stop, start + size))


def check_classes(name: str, expected: int, classes: int) -> None:
    """Raise `InputError` if `name`, a parameter for `expected` classes, meets another number."""
    if expected != classes:
        raise InputError(f"for {expected} classes, the forecast has {classes}", field=name)


def check_sample(count: int, classes: int, gain: float = 0.0) -> None:
    """Raise `InputError` for arguments of which no utilities can be drawn."""
    if count < 1 or classes < 2:
        told = f"count {count} and classes {classes} must be >= 1 and >= 2"
        raise InputError(told, field="sample")
    if not 0 <= gain <= 1:
        told = f"a gain of {gain} for errors, expected a number from 0 to 1"
        raise InputError(told, field="sample")


def parameter_matrix(values: Any, name: str, ndim: int = 2) -> Array:
    """Return the parameters of a utility class: finite float64 of `ndim` dimensions."""
    numbers = check_numbers(values, name).astype(np.float64, copy=False)
    if numbers.ndim == ndim - 1:
        numbers = numbers[None]
    if numbers.ndim != ndim or numbers.size == 0:
        message = f"expected {ndim - 1} or {ndim} dimensions, none empty, got {list(numbers.shape)}"
        raise InputError(message, field=name)
    if not np.isfinite(numbers).all():
        raise InputError("NaN or infinite values", field=name)
    return numbers
