"""Products with rows of probabilities that are all the same but for a few.

Projecting onto the simplex makes hundreds of small probabilities zero, and a later patch lifts them
all to the same value. With c the value of that plateau,

    <p, θ> = c Σ_j θ_j + Σ_{j off the plateau} (p_j - c) θ_j,

so such a row costs as much as it has probabilities off the plateau. In the middle of patching most
rows can be like that: a product with 264 payoffs of 1000 classes then takes a third of the time of
a dense one. It takes as long if a quarter of each row is off. More than that can be only where
some probabilities are above the plateau and others below, which is rare.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.threads import over_row_blocks

TILE = 16
"""Points whose products are written together: as many float32 as a cache line holds."""
TERMS = 8
"""Terms added at a time: reading and writing the sum costs as much as one of them."""


@compiled
def _find_flat(p: Any, order: Any, flat: Any) -> None:
    quarter = p.shape[1] // 4
    for i in range(p.shape[0]):
        above, below = order[i, quarter], order[i, p.shape[1] - 1 - quarter]
        flat[i] = p[i, above] == p[i, below]


def flat_rows(probabilities: Tensor, order: Tensor) -> Tensor:
    """Return whether the middle half of each ranking is a plateau: bool [n]."""
    flat = np.empty(len(order), np.bool_)
    _find_flat(probabilities.numpy(), order.numpy(), flat)
    return torch.from_numpy(flat)


@compiled
def _off_plateau(p: Any, order: Any, values: Any, classes: Any) -> Any:
    """Write p - c off the plateau and its classes; return their number and c."""
    c = p[order[order.size // 2]]
    count = 0
    for k in range(order.size):
        if p[order[k]] == c:
            break
        values[count], classes[count] = p[order[k]] - c, order[k]
        count += 1
    for k in range(order.size - 1, -1, -1):
        if p[order[k]] == c:
            break
        values[count], classes[count] = p[order[k]] - c, order[k]
        count += 1
    return count, c


@compiled_sums
def _add_terms(values: Any, places: Any, count: int, payoffs: Any, total: Any) -> None:
    """total [b] += Σ_k values[k] · payoffs[places[k]], `count` being a multiple of TERMS."""
    for k in range(0, count, TERMS):
        v0, v1, v2, v3 = values[k], values[k + 1], values[k + 2], values[k + 3]
        v4, v5, v6, v7 = values[k + 4], values[k + 5], values[k + 6], values[k + 7]
        r0, r1 = payoffs[places[k]], payoffs[places[k + 1]]
        r2, r3 = payoffs[places[k + 2]], payoffs[places[k + 3]]
        r4, r5 = payoffs[places[k + 4]], payoffs[places[k + 5]]
        r6, r7 = payoffs[places[k + 6]], payoffs[places[k + 7]]
        for u in range(total.size):
            first = (v0 * r0[u] + v1 * r1[u]) + (v2 * r2[u] + v3 * r3[u])
            second = (v4 * r4[u] + v5 * r5[u]) + (v6 * r6[u] + v7 * r7[u])
            total[u] += first + second


@compiled
def _products(p: Any, order: Any, rows: Any, payoffs: Any, sums: Any, out: Any) -> None:
    classes, utilities = payoffs.shape
    values = np.empty(classes + TERMS, out.dtype)
    places = np.empty(classes + TERMS, np.int32)
    tile = np.empty((TILE, utilities), out.dtype)
    for first in range(0, rows.size, TILE):
        width = min(TILE, rows.size - first)
        for k in range(width):
            i = rows[first + k]
            count, c = _off_plateau(p[i], order[i], values, places)
            padded = -(-count // TERMS) * TERMS
            values[count:padded] = 0
            places[count:padded] = 0
            for u in range(utilities):
                tile[k, u] = c * sums[u]
            _add_terms(values, places, padded, payoffs, tile[k])
        for u in range(utilities):
            for k in range(width):
                out[u, first + k] = tile[k, u]


def flat_products(
    probabilities: Tensor,
    order: Tensor,
    rows: Tensor,
    payoffs: Tensor,
    out: Tensor,
) -> None:
    """Write the predicted utilities of `rows` [k] of the points: `out` [b, k].

    Args:
        probabilities: float64 [n, C].
        order: int32 [n, C], the classes of each row by (probability descending, class).
        rows: int64 [k]; right for all, fast for those of `flat_rows`.
        payoffs: float64 [b, C] by class.
        out: float32 or float64, which is also what terms are added in.
    """
    p, classes, chosen = probabilities.numpy(), order.numpy(), rows.numpy()
    table = payoffs.T.to(out.dtype).contiguous().numpy()
    sums, written = payoffs.sum(dim=1).numpy(), out.numpy()

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _products(p, classes, chosen[part], table, sums, written[:, part])

    over_row_blocks(work, len(chosen), len(chosen) * len(payoffs), TILE)
