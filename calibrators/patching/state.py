"""A forecast under patching: probabilities that move, and their current ranking.

Only the rows that a patch moves are ranked again. Every number of a row depends on that row alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.ranks import descending_order
from utility_calibration.metrics.kernels.threads import over_blocks, row_blocks
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from ..losses import Loss

TIED_RANKS = 2.5e-7
"""Neighbours in a row's ranking that are no further apart are ranked by class. Projection makes
plateaus of entries that are equal except for rounding (in float32 as well), and rounding must not
decide which of them are among the K most probable."""
MOVED_ELEMENTS = 1 << 17  # that a thread moves at a time, so few that they stay in the cache


class PatchedForecast:
    """Probabilities float64 [n, C], their order [n, C] and top-K sums [n, C].

    `probabilities` before patching are copied. Without `labels`, int64 [n], the state can be moved,
    but not audited. `ranks`, int64 [n], are those of the labels. `weights`, float64 [n], are
    positive numbers of points, one each if None; `shares` are the same, ones if None, and `points`
    is their sum.
    """

    def __init__(
        self, probabilities: Array, labels: Array | None = None, weights: Array | None = None
    ) -> None:
        first = np.ascontiguousarray(probabilities, np.float64)
        self.probabilities, self.top_sums = np.empty_like(first), np.empty_like(first)
        self.order = np.empty(first.shape, np.int32)
        all_rows = np.arange(len(first))
        self.labels = np.full_like(all_rows, -1) if labels is None else labels
        self.ranks = np.empty_like(all_rows)
        self.weights = weights
        self.shares = np.ones(len(first)) if weights is None else weights
        self.points = float(self.shares.sum())
        self.move(all_rows, lambda block: first[block])

    def move(self, rows: Array, moved: Callable[[slice], Array]) -> None:
        """Give `rows[block]` the probabilities `moved(block)` [k, C], and rank them."""
        arrays = self.probabilities, self.order, self.top_sums, self.labels, self.ranks

        def work(start: int, stop: int) -> None:
            block, p = rows[start:stop], moved(slice(start, stop))
            order = descending_order(p, TIED_RANKS)
            _replace_rows(np.ascontiguousarray(p), order, block, *arrays)

        over_blocks(work, row_blocks(len(rows), self.probabilities.shape[1], MOVED_ELEMENTS))

    def losses(self, loss: Loss) -> Array:
        """Return each point's -log p_y, or Σ_c (p_c - y_c)²: float64 [n]."""
        of_label = self.probabilities[np.arange(len(self.labels)), self.labels]
        if loss == "nll":
            return -np.log(of_label.clip(min=LIKELIHOOD_FLOOR))
        # Σ (p - y)² = ‖p‖² - 2 p_y + 1, which needs no matrix of outcomes.
        return np.square(self.probabilities).sum(axis=1) - 2 * of_label + 1

    def mean_loss(self, loss: Loss) -> float:
        """Return the weighted mean of `losses`."""
        return float(np.average(self.losses(loss), weights=self.weights))

    def forecast(self, rows: Array | None = None) -> Forecast:
        """Return the current forecast of all points or of `rows`, with the same ties."""
        p = self.probabilities
        return Forecast(p if rows is None else p[rows], TIED_RANKS)


@compiled
def _replace_rows(
    p: Any, order: Any, rows: Any, to_p: Any, to_order: Any, to_sums: Any, labels: Any, ranks: Any
) -> None:
    """Copy p and order [k, C] to `rows` of a state's arrays; write their top-K sums and ranks."""
    for k, i in enumerate(rows):
        total, ranks[i] = 0.0, 0
        for place, label in enumerate(order[k]):
            to_p[i, place] = p[k, place]
            to_order[i, place] = label
            total += p[k, label]
            to_sums[i, place] = total
            if label == labels[i]:
                ranks[i] = place
