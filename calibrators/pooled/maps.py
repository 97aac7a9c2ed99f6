"""The two maps of pooled scaling, N (scale, shift, shape and rank) and B (N with a matrix).

    N   score_c = (1 + s_c) ℓ_c + a_c + Σ_k θ_k φ_k(c)
    B   score_c = Σ_j W_cj ℓ_j + a_c + Σ_k θ_k φ_k(c)

Both minimise the mean NLL of softmax(score), plus penalties of the squared distances from the
identity: 1/n for θ, C/n for a and for s or the diagonal of W, 3C/n for the rest of W. The problems
are convex. A point is a vector: θ, then a, then 1 + s or W row by row.

A class's features φ(c) are hinges of its ℓ = ln q, a bias for its rank, slopes for the first two
ranks, and for the first class the gap to the second. Only the most probable classes of a row have
any. The others share what little probability is left, and no rank among them means anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from utility_calibration.metrics.kernels.ranks import descending_order
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import row_blocks

from ..dirichlet.curvature import ClassCurvature
from ..dirichlet.linear_map import penalty_weights
from ..losses import residuals
from ..solvers.lbfgs import Minimum, Pairs, dot, minimize

PLACES = 12  # number of most probable classes of a row that have features
KNOTS = (-0.05, -0.2, -0.5, -1.0, -2.0, -3.5, -5.0, -7.0)
"""Where the hinges max(ℓ - knot, 0) begin; e^-.05 = .95 and e^-7 = .0009."""
BIASES, SLOPES = 10, 2
"""Numbers of ranks, from the first, with a bias of their own and with a slope of their own."""
COUNT = len(KNOTS) + BIASES + SLOPES + 1
TIED = 1e-6  # neighbours in a row's order whose ℓ are no further apart are ranked by number
OFF_DIAGONAL = 3.0  # strength of the penalty off the diagonal
TOLERANCE = 1e-10  # Newton decrement in nats; the penalties leave no flat direction
MAX_ITERATIONS = 200
Precondition = Callable[[Tensor], Tensor]


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


class Data(NamedTuple):
    """Points to fit: ℓ float64 [n, C], its features, and labels int64 [n]."""

    inputs: Tensor
    features: Features
    labels: Tensor

    def rows(self, rows: Tensor | slice) -> Self:
        """Return some of the points."""
        return type(self)(self.inputs[rows], self.features.rows(rows), self.labels[rows])

    def blocks(self) -> list[Self]:
        """Return the points in blocks that the cache holds."""
        return [self.rows(slice(*ends)) for ends in row_blocks(*self.inputs.shape)]


@dataclass(frozen=True)
class MapPoint:
    """The parts of a point: θ [K], a [C], and the scales 1 + s [C] or the matrix W [C, C]."""

    theta: Tensor
    shift: Tensor
    slopes: Tensor

    @classmethod
    def of(cls, vector: Tensor, classes: int) -> Self:
        """Return the parts of a vector, which share its memory."""
        theta, shift, slopes = vector.split((COUNT, classes, len(vector) - COUNT - classes))
        is_matrix = len(slopes) > classes
        return cls(theta, shift, slopes.view(classes, classes) if is_matrix else slopes)

    def scores(self, inputs: Tensor, features: Features) -> Tensor:
        """Return the scores of ℓ [n, C], [n, C]."""
        is_matrix = self.slopes.dim() == 2
        linear = inputs @ self.slopes.T if is_matrix else inputs * self.slopes
        return features.add_to(linear + self.shift, self.theta)


def identity(classes: int, with_matrix: bool, device: torch.device) -> Tensor:
    """Return the point of N, or of B, whose scores are ℓ."""
    slopes = torch.eye(classes) if with_matrix else torch.ones(classes)
    point = torch.cat([torch.zeros(COUNT + classes), slopes.flatten()])
    return point.to(device, torch.float64)


def widened(point: Tensor, classes: int) -> Tensor:
    """Return a point of N as the point of B that is the same map."""
    return torch.cat([point[:-classes], point[-classes:].diag().flatten()])


def penalties(points: int, classes: int, with_matrix: bool, device: torch.device) -> Tensor:
    """Return the weight of each parameter's squared distance from the identity."""
    share = classes / points
    weights = penalty_weights(classes, share, OFF_DIAGONAL * share, share, device)
    slopes = weights[:, :-1] if with_matrix else weights.diagonal()
    return torch.cat([slopes.new_full((COUNT,), 1 / points), weights[:, -1], slopes.flatten()])


def solve(
    data: Data, begin: Tensor, precondition: Precondition, pairs: Pairs | None = None
) -> Minimum:
    """Return the point of least penalised NLL; `begin` says of which map, and where to start.

    `pairs` are those of a fit to most of the same points.
    """
    n, classes = data.inputs.shape
    with_matrix = len(begin) > COUNT + 2 * classes
    start = identity(classes, with_matrix, begin.device)
    weights, blocks = penalties(n, classes, with_matrix, begin.device), data.blocks()

    def objective(point: Tensor) -> tuple[float, Tensor]:
        away = point - start
        pull = weights * away
        loss, gradient = n * dot(pull, away), (2.0 * n) * pull
        here, sums = MapPoint.of(point, classes), MapPoint.of(gradient, classes)
        for x, features, y in blocks:
            scores = here.scores(x, features)
            loss += residuals(scores, y)  # now `scores` holds the gradient by the scores
            sums.theta.add_(features.gradient(scores))
            sums.shift.add_(scores.sum(dim=0))
            sums.slopes.add_(scores.T @ x if with_matrix else scores.mul_(x).sum(dim=0))
        return loss / n, gradient.div_(n)

    limits: dict[str, Any] = {"tolerance": TOLERANCE, "max_iterations": MAX_ITERATIONS}
    return minimize(objective, begin, precondition, pairs=pairs, **limits)


def preconditioner_n(data: Data) -> Precondition:
    """Return the inverse of N's Hessian at the identity."""
    n, classes = data.inputs.shape
    hessian = data.inputs.new_zeros(COUNT + 2 * classes, COUNT + 2 * classes)
    own, a, s = hessian.diagonal(), slice(COUNT, COUNT + classes), slice(COUNT + classes, None)
    for x, features, _ in data.blocks():
        p, places = softmax(x), features.places
        weighted = features.values * p.gather(1, places)[:, :, None]
        means = torch.cat([weighted.sum(dim=1), p, p * x], dim=1)
        hessian -= means.T @ means
        flat, of_top = weighted.flatten(0, 1), x.gather(1, places).flatten()[:, None]
        hessian[:COUNT, :COUNT] += flat.T @ features.values.flatten(0, 1)
        hessian[a, :COUNT].index_add_(0, places.flatten(), flat)
        hessian[s, :COUNT].index_add_(0, places.flatten(), flat * of_top)
        hessian[s, a].diagonal().add_((p * x).sum(dim=0))
        own[COUNT:].add_(torch.cat([p, p * x * x], dim=1).sum(dim=0))
    hessian /= n
    own.add_(penalties(n, classes, False, own.device), alpha=2.0)
    root = torch.linalg.cholesky(hessian.tril() + hessian.tril(-1).T)
    return lambda gradients: torch.cholesky_solve(gradients.T, root).T


def preconditioner_b(data: Data, of_n: Precondition) -> Precondition:
    """Return the sum of N's inverse and of the inverse curvature of every row of (W, a)."""
    n, classes = data.inputs.shape
    sizes = COUNT, classes, classes * classes

    def as_rows(points: Tensor) -> tuple[Tensor, Tensor]:
        theta, shift, slopes = points.split(sizes, dim=1)
        return theta, torch.cat([slopes.unflatten(1, (classes, -1)), shift[:, :, None]], dim=2)

    weights = as_rows(penalties(n, classes, True, data.inputs.device)[None])[1][0]
    of_rows = ClassCurvature.at(data.inputs, 1.0).preconditioner(2 * weights)

    def apply(gradients: Tensor) -> Tensor:
        theta, rows = as_rows(gradients)
        diagonals = rows[:, :, -1], rows[:, :, :-1].diagonal(dim1=1, dim2=2)
        theta, shift, scale = of_n(torch.cat([theta, *diagonals], 1)).split(
            (COUNT, classes, classes), dim=1
        )
        rows = of_rows(rows)
        rows[:, :, :-1].diagonal(dim1=1, dim2=2).add_(scale)
        return torch.cat([theta, shift + rows[:, :, -1], rows[:, :, :-1].flatten(1)], dim=1)

    return apply
