"""The maps of pooled scaling: O (scale and shift), N (also shape and rank), B (N with a matrix).

    O   score_c = (1 + s) ℓ_c + a_c
    N   score_c = (1 + s_c) ℓ_c + a_c + Σ_k θ_k φ_k(c)
    B   score_c = Σ_j W_cj ℓ_j + a_c + Σ_k θ_k φ_k(c)

All minimise the mean NLL of softmax(score), plus penalties of the squared distances from the
identity: 1/n for θ, C/n for a and for every s_c or the diagonal of W, 3C/n for the rest of W. If
points have weights, the mean is weighted, and n is their sum. The problems are convex. A point of
them is a vector: θ, then a, then 1 + s or W row by row. O is the point of N's problem among those
with θ = 0 and equal s_c. It is bias-corrected temperature scaling (Alexandari, Kundaje and
Shrikumar 2020) with penalties.

A class's features φ(c) are hinges of its ℓ = ln q, a bias for its rank, slopes for the first two
ranks, and for the first class the gap to the second. Only the most probable classes of a row have
any. The others share what little probability is left, and no rank among them means anything.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.ranks import descending_order
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import row_blocks

from ..dirichlet.curvature import ClassCurvature, Precondition
from ..dirichlet.linear_map import penalty_weights
from ..losses import block_residuals
from ..solvers.lbfgs import Minimum, Pairs, dot, minimize
from ..solvers.sums import summed

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


class Features(NamedTuple):
    """The features of the most probable classes of every row.

    `places`, int64 [n, P], are these classes, the most probable first, and `values` [n, P, K] their
    φ.
    """

    places: Array
    values: Array

    @classmethod
    def of(cls, inputs: Array, order: Array | None = None) -> Self:
        """Return the features of ℓ [n, C], whose classes are in descending `order` [n, C]."""
        order = descending_order(inputs, TIED) if order is None else order
        places = order[:, :PLACES].astype(np.int64)
        top = np.take_along_axis(inputs, places, axis=1)[:, :, None]
        at_rank = np.eye(top.shape[1], max(BIASES, top.shape[1]))
        gap = (top[:, :1] - top[:, 1:2]) * at_rank[:, :1]
        hinges, biases = (top - np.array(KNOTS)).clip(min=0), at_rank[:, :BIASES]
        biases = np.broadcast_to(biases, (len(top), *biases.shape))
        parts = [hinges, biases, at_rank[:, :SLOPES] * top, gap]
        return cls(places, np.concatenate(parts, axis=2))

    def rows(self, rows: Array | slice) -> Self:
        """Return the features of some rows."""
        return type(self)(self.places[rows], self.values[rows])

    def add_to(self, scores: Array, theta: Array) -> Array:
        """Return `scores` [n, C] plus Σ_k θ_k φ_k(c); they may be overwritten."""
        at = np.arange(len(scores))[:, None], self.places
        scores[at] += self.values @ theta  # the places of a row differ
        return scores

    def gradient(self, residuals: Array) -> Array:
        """Return the gradient by θ of a loss with gradient `residuals` [n, C] by the scores."""
        top = np.take_along_axis(residuals, self.places, axis=1)
        return top.ravel() @ self.values.reshape(top.size, self.values.shape[-1])


class Data(NamedTuple):
    """Points to fit: ℓ float64 [n, C], its features, labels int64 [n], weights float64 [n].

    The sum of the weights is the number of points that they stand for.
    """

    inputs: Array
    features: Features
    labels: Array
    weights: Array

    def rows(self, rows: Array | slice) -> Self:
        """Return some of the points."""
        features = self.features.rows(rows)
        return type(self)(self.inputs[rows], features, self.labels[rows], self.weights[rows])

    def without_features(self) -> Self:
        """Return the points with features of no class, for maps with θ = 0."""
        places, values = (part[:, :0] for part in self.features)
        return self._replace(features=Features(places, values))

    def blocks(self) -> list[Self]:
        """Return the points in blocks that the cache holds."""
        return [self.rows(slice(*ends)) for ends in row_blocks(*self.inputs.shape)]


@dataclass(frozen=True)
class MapPoint:
    """The parts of a point: θ [K], a [C], and the scales 1 + s [C] or the matrix W [C, C]."""

    theta: Array
    shift: Array
    slopes: Array

    @classmethod
    def of(cls, vector: Array, classes: int) -> Self:
        """Return the parts of a vector, which share its memory."""
        theta, shift, slopes = np.split(vector, (COUNT, COUNT + classes))
        is_matrix = len(slopes) > classes
        return cls(theta, shift, slopes.reshape(classes, classes) if is_matrix else slopes)

    def scores(self, inputs: Array, features: Features) -> Array:
        """Return the scores of ℓ [n, C], [n, C]."""
        is_matrix = self.slopes.ndim == 2
        linear = inputs @ self.slopes.T if is_matrix else inputs * self.slopes
        return features.add_to(linear + self.shift, self.theta)


def identity(classes: int, with_matrix: bool) -> Array:
    """Return the point of N, or of B, whose scores are ℓ."""
    slopes = np.eye(classes) if with_matrix else np.ones(classes)
    return np.concatenate([np.zeros(COUNT + classes), slopes.ravel()])


def widened(point: Array, classes: int) -> Array:
    """Return a point of N as the point of B that is the same map."""
    return np.concatenate([point[:-classes], np.diag(point[-classes:]).ravel()])


def penalties(points: float, classes: int, with_matrix: bool) -> Array:
    """Return the weight of each parameter's squared distance from the identity, of n `points`.

    Fewer than one count as one, because one point can have nearly all weight of all folds.
    """
    points = max(points, 1.0)
    share = classes / points
    weights = penalty_weights(classes, share, OFF_DIAGONAL * share, share)
    slopes = weights[:, :-1] if with_matrix else weights.diagonal()
    return np.concatenate([np.full(COUNT, 1 / points), weights[:, -1], slopes.ravel()])


def solve(
    data: Data, begin: Array, precondition: Precondition, pairs: Pairs | None = None
) -> Minimum:
    """Return the point of least penalised NLL; `begin` says of which map, and where to start.

    `pairs` are those of a fit to most of the same points.
    """
    n, classes = float(data.weights.sum()), data.inputs.shape[1]
    with_matrix = len(begin) > COUNT + 2 * classes
    start = identity(classes, with_matrix)
    strengths, blocks = penalties(n, classes, with_matrix), data.blocks()
    numbered = [(number, number + 1) for number in range(len(blocks))]

    def objective(point: Array) -> tuple[float, Array]:
        away = point - start
        pull = strengths * away
        loss, gradient = n * dot(pull, away), (2.0 * n) * pull
        here, sums = MapPoint.of(point, classes), MapPoint.of(gradient, classes)

        def of_block(number: int, _: int) -> list[Any]:
            x, features, labels, weights = blocks[number]
            scores = here.scores(x, features)
            value = block_residuals(scores, labels, weights)
            # Now `scores` holds the gradient by the scores.
            slopes = scores.T @ x if with_matrix else (scores * x).sum(axis=0)
            return [value, features.gradient(scores), scores.sum(axis=0), slopes]

        value, theta, shift, slopes = summed(of_block, numbered)
        sums.theta[:] += theta
        sums.shift[:] += shift
        sums.slopes[:] += slopes
        return (loss + value) / n, gradient / n

    limits: dict[str, Any] = {"tolerance": TOLERANCE, "max_iterations": MAX_ITERATIONS}
    return minimize(objective, begin, precondition, pairs=pairs, **limits)


def hessian_n(data: Data) -> Array:
    """Return the lower half of N's Hessian at the identity."""
    n, classes = float(data.weights.sum()), data.inputs.shape[1]
    blocks = data.blocks()
    a, s = slice(COUNT, COUNT + classes), slice(COUNT + classes, None)

    def of_block(number: int, _: int) -> list[Array]:
        x, features, _labels, weights = blocks[number]
        p, places = softmax(x), features.places
        weighted = features.values * np.take_along_axis(p, places, axis=1)[:, :, None]
        means = np.concatenate([weighted.sum(axis=1), p, p * x], axis=1)
        means *= np.sqrt(weights)[:, None]
        hessian = -(means.T @ means)
        p *= weights[:, None]
        weighted *= weights[:, None, None]
        flat = weighted.reshape(places.size, -1)
        of_top = np.take_along_axis(x, places, axis=1).reshape(-1, 1)
        hessian[:COUNT, :COUNT] += flat.T @ features.values.reshape(places.size, -1)
        hessian[a, :COUNT] += _added(places, flat, classes)
        hessian[s, :COUNT] += _added(places, flat * of_top, classes)
        np.einsum("ii->i", hessian[s, a])[:] += (p * x).sum(axis=0)
        np.einsum("ii->i", hessian)[COUNT:] += np.concatenate([p, p * x * x], axis=1).sum(axis=0)
        return [hessian]

    (hessian,) = summed(of_block, [(number, number + 1) for number in range(len(blocks))])
    hessian /= n
    np.einsum("ii->i", hessian)[:] += 2.0 * penalties(n, classes, False)
    lower: Array = hessian
    return lower


def preconditioner_n(hessian: Array) -> Precondition:
    """Return the inverse of N's Hessian."""
    root = cho_factor(hessian, lower=True, check_finite=False)  # it reads the lower half alone
    return lambda gradients: cho_solve(root, gradients.T, check_finite=False).T


def preconditioner_o(hessian: Array, classes: int) -> Precondition:
    """Return the inverse of N's Hessian within the points of O, and 0 in all other directions.

    So a search that begins at a point of O stays among them.
    """
    basis = np.zeros((len(hessian), classes + 1))
    basis[COUNT:-classes, :-1] = np.eye(classes)
    basis[-classes:, -1] = 1
    whole = np.tril(hessian) + np.tril(hessian, -1).T
    root = cho_factor(basis.T @ whole @ basis, check_finite=False)
    return lambda gradients: (basis @ cho_solve(root, (gradients @ basis).T, check_finite=False)).T


def preconditioner_b(data: Data, of_n: Precondition) -> Precondition:
    """Return the sum of N's inverse and of the inverse curvature of every row of (W, a)."""
    n, classes = float(data.weights.sum()), data.inputs.shape[1]
    ends = COUNT, COUNT + classes

    def as_rows(points: Array) -> tuple[Array, Array]:
        theta, shift, slopes = np.split(points, ends, axis=1)
        slopes = slopes.reshape(-1, classes, classes)
        return theta, np.concatenate([slopes, shift[:, :, None]], axis=2)

    weights = as_rows(penalties(n, classes, True)[None])[1][0]
    of_rows = ClassCurvature.at(data.inputs, 1.0, counts=data.weights).preconditioner(2 * weights)

    def apply(gradients: Array) -> Array:
        theta, rows = as_rows(gradients)
        diagonals = rows[:, :, -1], rows[:, :, :-1].diagonal(axis1=1, axis2=2)
        theta, shift, scale = np.split(of_n(np.concatenate([theta, *diagonals], 1)), ends, axis=1)
        rows = of_rows(rows)
        np.einsum("gii->gi", rows[:, :, :-1])[:] += scale
        flat = rows[:, :, :-1].reshape(len(rows), -1)
        return np.concatenate([theta, shift + rows[:, :, -1], flat], axis=1)

    return apply


def _added(places: Array, rows: Array, classes: int) -> Array:
    """Return for each class the sum of the rows at its places: [C, K]."""
    flat = places.ravel()
    columns = [np.bincount(flat, column, minlength=classes) for column in rows.T]
    return np.stack(columns, axis=1)
