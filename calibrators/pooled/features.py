"""What the maps of pooled scaling see of a row: the shape of ℓ = ln q, and the classes' ranks.

A class's features φ(c) are hinges of its ℓ, a bias for its rank, slopes for the first two ranks,
and for the first class the gap to the second. Only the most probable classes of a row have any.
The others share what little probability is left, and no rank among them means anything.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from metrics.kernels.ranks import descending_order

PLACES = 12  # number of most probable classes of a row that have features
KNOTS = (-0.05, -0.2, -0.5, -1.0, -2.0, -3.5, -5.0, -7.0)
"""Where the hinges max(ℓ - knot, 0) begin; e^-.05 = .95 and e^-7 = .0009."""
BIASES, SLOPES = 10, 2
"""Numbers of ranks, from the first, with a bias of their own and with a slope of their own."""
COUNT = len(KNOTS) + BIASES + SLOPES + 1
TIED = 1e-6  # neighbours in a row's order whose ℓ are no further apart are ranked by number


class Features(NamedTuple):
    """The features of the most probable classes of every row.

    `places`, int64 [n, P], are these classes, the most probable first, and `values` [n, P, K] their
    φ.
    """

    places: Tensor
    values: Tensor

    @classmethod
    def of(cls, inputs: Tensor, order: Tensor | None = None) -> Self:
        """Return the features of ℓ [n, C], whose classes are in descending `order` [n, C]."""
        order = descending_order(inputs, TIED) if order is None else order
        places = order[:, :PLACES].to(torch.int64)
        top = inputs.gather(1, places)[:, :, None]
        at_rank = torch.eye(top.shape[1], max(BIASES, top.shape[1])).to(top)
        gap = (top[:, :1] - top[:, 1:2]) * at_rank[:, :1]
        hinges, biases = (top - top.new_tensor(KNOTS)).clamp(min=0), at_rank[:, :BIASES]
        biases = biases.expand(top.shape[0], -1, -1)  # not len(): a number to exporters
        return cls(places, torch.cat([hinges, biases, at_rank[:, :SLOPES] * top, gap], dim=2))

    def rows(self, rows: Tensor | slice) -> Self:
        """Return the features of some rows."""
        return type(self)(self.places[rows], self.values[rows])

    def add_to(self, scores: Tensor, theta: Tensor) -> Tensor:
        """Return `scores` [n, C] plus Σ_k θ_k φ_k(c); they may be overwritten."""
        return scores.scatter_add_(1, self.places, self.values @ theta)

    def gradient(self, residuals: Tensor) -> Tensor:
        """Return the gradient by θ of a loss with gradient `residuals` [n, C] by the scores."""
        return residuals.gather(1, self.places).flatten() @ self.values.flatten(0, 1)
