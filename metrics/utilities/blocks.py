"""m utilities u(p, e_j) on a forecast, evaluated in blocks: what all that measures them needs.

A utility maps a forecast p and an outcome e_j to a number, usually in [-1, 1]. Its vector
u⃗(p) = (u(p, e_1), …, u(p, e_C)) gives the predicted utility v = <p, u⃗(p)> (eq. 3.1) and
the realized utility u⃗(p)[y].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import Array, as_array
from ..forecast import Forecast, Outcomes
from ..kernels.grid import on_grid, power_above
from ..kernels.prefix_range import Orders, prefix_range
from ..shown import WorstUtility
from ..uc import first_largest, worst_interval

BLOCK_BYTES = 64 << 20
"""Largest size of a block of predicted utilities [b, n], unless `FEWEST_ROWS` rows need more."""
FEWEST_ROWS = 64
"""Smallest number of utilities in a block (if the class has so many): small products are slow."""
CELL = 2.0**-40
"""Predictions are rounded to this share of the largest payoff."""


class Block(NamedTuple):
    """b utilities at n points, as `prefix_range` takes them.

    The realized utility of point i is looked up in a table: u[k, i] = payoffs[k, codes[i]].
    """

    predicted: Array
    """[b, n], the predicted utility of each point."""
    payoffs: Array
    """[b, L], what each utility can be."""
    codes: Array
    """[R, n], the column of `payoffs` that holds each point's utility, for R draws of labels."""
    orders: Orders | None = None
    """What blocks with the same predictions share."""
    is_tied: bool = False
    """Whether predictions that differ only by rounding are equal already."""


class Utilities(ABC):
    """A finite set of utilities, numbered from 0. `UtilityClass` adds what a caller asks of it."""

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
        # What a product just made is rounded in place: fresh memory takes longer than the rounding.
        # A view may be of the forecast itself, which stays as it is.
        out = predicted if predicted.flags.owndata and predicted.flags.writeable else None
        rounded = on_grid(predicted, _cells_of(payoffs), out)
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
        factors, errors = outcomes.factors, []
        # One draw is summed block by block, where rounding costs less than in all of the memory.
        rounds_late = outcomes.draws == 1 and factors is None and self.alike(forecast) is None
        for block in (self.blocks if rounds_late else self.tied_blocks)(forecast, outcomes):
            cells = _cells_of(block.payoffs) if rounds_late and not block.is_tied else None
            ranges, _ = prefix_range(*block[:3], weights=factors, orders=block.orders, cells=cells)
            errors.append(ranges / outcomes.size)
        return np.concatenate(errors, axis=1)

    def worst_of(self, forecast: Forecast, outcomes: Outcomes, errors: Array) -> WorstUtility:
        """Return the utility of the largest of `errors` [m] (eq. 3.5) and its interval (eq. 3.3).

        The errors are those under the first draw of `outcomes`.
        """
        index = first_largest(errors)
        predicted, realized = self.predicted_and_realized(forecast, outcomes, index)
        weights = None if outcomes.weights is None else outcomes.weights[0]
        interval = worst_interval(predicted, realized, sample_weight=weights)
        return WorstUtility(index, interval.low, interval.high, interval.sign, interval.error)


def _cells_of(payoffs: Array) -> Array:
    """Return to which cells predictions for `payoffs` [b, L] are rounded: [b, 1]."""
    return CELL * power_above(np.abs(payoffs).max(axis=1, keepdims=True))


def equal_blocks(utilities: range, n: int, most: int | None = None) -> Iterator[slice]:
    """Yield blocks of `utilities` for n points, of equal size because small blocks are slow."""
    rows = max(FEWEST_ROWS, BLOCK_BYTES // (8 * n))
    count = -(-len(utilities) // (rows if most is None else min(rows, most)))
    size = -(-len(utilities) // count)
    for start in range(utilities.start, utilities.stop, size):
        yield slice(start, min(utilities.stop, start + size))
