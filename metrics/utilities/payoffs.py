"""Utilities given by a payoff for each class or each rank.

Payoffs of the outcome's class or rank are u(p, e_j) = a[j] or θ[rank(p, j)]. Their predictions are
linear in the probabilities (class coordinates) or in the sorted probabilities (rank coordinates).
So the predicted utilities of a block of utilities are one matrix product.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Literal

import numpy as np

from ..arrays import Array
from ..forecast import Forecast, Outcomes
from ..kernels.threads import product
from .base import UtilityClass
from .blocks import FEWEST_ROWS, Block, equal_blocks


class PayoffClass(UtilityClass):
    """Utilities given by a payoff per coordinate, where a coordinate is a class or a rank."""

    coordinate: Literal["class", "rank"]
    is_short = False
    """Whether `near` returns a table of b + 1 columns: one per utility of the block and one for
    all other outcomes. All C columns for C utilities would be C² numbers."""

    def near(self, part: slice, classes: int, codes: Array) -> tuple[Array, Array]:
        """Return payoffs [b, L] of the utilities in `part`, and the outcomes' codes in them."""
        return self.payoffs(classes)[part], codes

    @abstractmethod
    def payoffs(self, classes: int) -> Array:
        """Return the payoff vectors of the utilities: float64 [m, C]."""

    def count(self, classes: int) -> int:
        return len(self.payoffs(classes))

    def bounds(self, classes: int) -> Array:
        bounds = []
        for part in equal_blocks(range(self.count(classes)), classes):
            table, _ = self.near(part, classes, np.arange(1))
            bounds.append(np.stack([table.min(axis=1), table.max(axis=1)], axis=1))
        return np.concatenate(bounds).astype(np.float64, copy=False)

    def predicted(self, forecast: Forecast, payoffs: Array, part: slice) -> Array:
        """Return v of the utilities in `part`, [b, n], for their `payoffs` [b, C]."""
        if self.coordinate == "class":
            return product(payoffs, forecast.probabilities.T)
        return forecast.joined(lambda rows: product(payoffs, rows.ranked.T))

    def codes(self, outcomes: Outcomes) -> Array:
        """Return the coordinate of each outcome: [R, n]."""
        return outcomes.labels if self.coordinate == "class" else outcomes.ranks

    def payoff(self, index: int, classes: int) -> Array:
        """Return the payoff vector of utility `index`: float64 [C]."""
        table, columns = self.near(slice(index, index + 1), classes, np.arange(classes))
        return table[0, columns].astype(np.float64, copy=False)

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        p = forecast.probabilities
        payoff = self.payoff(index, forecast.classes)
        if self.coordinate == "class":
            return np.broadcast_to(payoff, p.shape)
        vectors = np.empty_like(p)
        np.put_along_axis(vectors, forecast.order, np.broadcast_to(payoff, p.shape), axis=1)
        return vectors

    def alike(self, forecast: Forecast) -> Array | None:
        """Compare probabilities by class, or in descending order if payoffs are by rank."""
        return forecast.alike if self.coordinate == "class" else forecast.ranked_alike

    def blocks(
        self, forecast: Forecast, outcomes: Outcomes, part: slice = slice(None)
    ) -> Iterator[Block]:
        """Yield blocks whose predictions fill `BLOCK_BYTES`."""
        codes, classes = self.codes(outcomes), forecast.classes
        # Payoffs of so many utilities are not larger than their predictions.
        most = max(FEWEST_ROWS, forecast.n) if self.is_short else None
        for block in equal_blocks(range(self.count(classes))[part], forecast.n, most):
            table, columns = self.near(block, classes, codes)
            table = table.astype(np.float64, copy=False)
            key = self, block.start, block.stop
            is_tied = key in forecast.kept or outcomes.draws > 1
            if key in forecast.kept:
                predicted, orders = forecast.kept[key]
            else:
                predicted, orders = self.predicted(forecast, table, block), []
                if is_tied:  # several draws share them, and their rounding
                    predicted = self.tied(forecast, np.ascontiguousarray(predicted), table)
                    forecast.keep(key, predicted, orders)
            yield Block(predicted, table, columns, orders, is_tied)
