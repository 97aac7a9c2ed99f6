"""A forecast under patching: probabilities that move, and their current ranking.

Only the rows that a patch moves are ranked again. Every number of a row depends on that row alone.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.ranks import descending_order, places_of
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
    but not audited. `ranks`, int64 [n], are those of the labels.
    """

    def __init__(self, probabilities: Tensor, labels: Tensor | None = None) -> None:
        first = probabilities.to(torch.float64).contiguous()
        self.on_cpu = first.device.type == "cpu"
        self.probabilities, self.top_sums = torch.empty_like(first), torch.empty_like(first)
        self.order = torch.empty_like(first, dtype=torch.int32 if self.on_cpu else torch.int64)
        all_rows = torch.arange(len(first), device=first.device)
        self.labels = torch.full_like(all_rows, -1) if labels is None else labels
        self.ranks = torch.empty_like(all_rows)
        self.move(all_rows, lambda block: first[block])

    def move(self, rows: Tensor, moved: Callable[[slice], Tensor]) -> None:
        """Give `rows[block]` the probabilities `moved(block)` [k, C], and rank them."""
        own = self.probabilities, self.order, self.top_sums, self.labels, self.ranks
        arrays = [tensor.numpy() for tensor in own] if self.on_cpu else []

        def work(start: int, stop: int) -> None:
            block, p = rows[start:stop], moved(slice(start, stop))
            order = descending_order(p, TIED_RANKS)
            if self.on_cpu:
                _replace_rows(p.numpy(), order.numpy(), block.numpy(), *arrays)
            else:
                self.probabilities[block] = p
                self.order[block] = order
                self.top_sums[block] = p.gather(1, order).cumsum(dim=1)
                self.ranks[block] = places_of(self.labels[block], order)

        classes = self.probabilities.shape[1]
        size = MOVED_ELEMENTS if self.on_cpu else max(1, len(rows)) * classes
        over_blocks(work, row_blocks(len(rows), classes, size))

    def losses(self, loss: Loss) -> Tensor:
        """Return each point's -log p_y, or Σ_c (p_c - y_c)²: float64 [n]."""
        of_label = self.probabilities.gather(1, self.labels[:, None])[:, 0]
        if loss == "nll":
            return -of_label.clamp(min=LIKELIHOOD_FLOOR).log()
        # Σ (p - y)² = ‖p‖² - 2 p_y + 1, which needs no matrix of outcomes.
        return self.probabilities.square().sum(dim=1) - 2 * of_label + 1

    def forecast(self, rows: Tensor | None = None) -> Forecast:
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
