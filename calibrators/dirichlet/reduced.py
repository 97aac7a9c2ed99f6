"""An approximate inverse Hessian for maps softmax(W x + b) that penalties hold near the identity.

What the penalties leave free lies nearly all in three directions of each class: its slope W_jj, its
intercept b_j, and its slopes in proportion to the mean of the rows that are undecided about it.
For steps along these 3C directions the Hessian is exact, also between classes. For steps orthogonal
to them its diagonal takes its place. The fewer classes there are, the more single slopes W_jk are
added to the directions; with ten classes all are. L-BFGS then needs 15 iterations for 7,000 x 100
points, and 44 with `ClassCurvature`, which has no entries between classes; for 7,000 x 10 points
it needs 15 in place of 88.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import row_blocks

from ..losses import row_weights
from ..solvers.sums import summed
from .curvature import Precondition

STEPS = 200  # number of directions up to which single slopes are added to the three of each class
BLOCK = 1 << 17  # numbers of a block of rows' steps, which fit in a core's own cache
ROWS = 10_000
"""The Hessian is that of every k-th row, with the largest k that leaves so many rows. Of 35,000 x
1,000 points it is every third: the fit took 9.4 core s in place of 13.8."""
FLOOR = 1e-6  # share of the diagonal that is added to it, because sums are float32


def directions(means: Array, squares: Array) -> Array:
    """Return K orthonormal directions of each class in its row of (W, b): float64 [C, C + 1, K].

    `means` and `squares` [C, C] are the means of x and of its centred squares by class. The single
    slopes are those of largest squares.
    """
    classes = len(means)
    n_slopes = min(classes - 1, max(0, STEPS // classes - 3))
    each = np.arange(classes)
    along = np.zeros((classes, classes + 1, 3 + n_slopes))
    along[:, classes, 0] = 1.0
    along[each, each, 1] = 1.0
    along[:, :classes, 2] = means
    ranked = squares.copy()
    np.fill_diagonal(ranked, -1.0)
    steepest = np.argsort(-ranked, axis=1, kind="stable")[:, :n_slopes]
    along[each[:, None], steepest, np.arange(3, 3 + n_slopes)] = 1.0
    return np.linalg.qr(along)[0]


def of_each_class(exact: Array, count: int) -> Array:
    """Return a view [C, K, K] of the entries of `exact` [C K, C K] between steps of one class."""
    classes = len(exact) // count
    return np.einsum("jkjl->jkl", exact.reshape(classes, count, classes, count))


@dataclass(frozen=True)
class ReducedHessian:
    """The Hessian of the mean NLL at W = I, b = 0, without penalties.

    Attributes:
        directions: float64 [C, C + 1, K], the orthonormal directions of each class.
        exact: float64 [C K, C K], the Hessian by the steps along them.
        diagonal: float64 [C, C + 1], of the rest.
    """

    directions: Array
    exact: Array
    diagonal: Array

    @classmethod
    def at(cls, inputs: Array, counts: Array | None = None) -> Self:
        """Return the Hessian for float32 `inputs` [n, C], weighted by `counts` [n]."""
        step = max(1, len(inputs) // ROWS)
        shares = row_weights(counts, inputs)[::step, None]
        shares = shares / shares.sum()
        inputs = np.ascontiguousarray(inputs[::step])
        n, classes = inputs.shape
        p = softmax(inputs)
        curved = (p * (1 - p) * shares).astype(inputs.dtype)
        diagonal = np.zeros((classes, classes + 1))
        diagonal[:, :-1] = curved.T @ np.square(inputs - inputs.mean(axis=1, keepdims=True))
        along = directions((curved.T @ inputs).astype(np.float64), diagonal[:, :-1])
        count = along.shape[2]
        maps = along.swapaxes(0, 1).reshape(classes + 1, -1).astype(inputs.dtype)  # [C + 1, C K]
        rooted = (p * np.sqrt(shares)).astype(inputs.dtype)
        weighted = (p * shares).astype(inputs.dtype)

        # By its logits z = W x + b a row's loss has the Hessian diag(p) - p pᵀ. A step along
        # direction k of class j shifts z_j alone. So two steps of one class have an entry with
        # p_j times both shifts, and any two steps one with -p_j p_l times both, which is added.
        def of_rows(first: int, last: int) -> list[Array]:
            shifts = inputs[first:last] @ maps[:-1]
            shifts += maps[-1]
            shifts = shifts.reshape(last - first, classes, count)  # [rows, C, K]
            by_p = shifts * weighted[first:last, :, None]
            of_one_class = by_p.transpose(1, 2, 0) @ shifts.swapaxes(0, 1)  # [C, K, K]
            by_p = (shifts * rooted[first:last, :, None]).reshape(last - first, -1)  # [rows, C K]
            # NumPy computes half of a matrix times its own transpose, and copies the other half.
            return [of_one_class, by_p.T @ by_p]

        # Each block adds to all of `exact`. A larger one has larger blocks, to be read less often.
        width = maps.shape[1]
        of_one_class, of_two_classes = summed(of_rows, row_blocks(n, width, max(BLOCK, width**2)))
        exact = np.negative(of_two_classes, dtype=np.float64)
        view = of_each_class(exact, count)
        view += of_one_class
        return cls(along, exact, diagonal)

    def preconditioner(self, penalty: Array) -> Precondition:
        """Return the approximate inverse of the Hessian plus the diagonal `penalty` [C, C + 1].

        It takes a stack of gradients [k, C, C + 1].
        """
        along, exact, diagonal = self.directions, self.exact.copy(), self.diagonal + penalty
        exact[np.diag_indices_from(exact)] *= 1 + FLOOR
        view = of_each_class(exact, along.shape[2])
        view += along.mT @ (penalty[:, :, None] * along)
        root = cho_factor(exact, lower=True, overwrite_a=True, check_finite=False)
        turned = np.ascontiguousarray(along.mT)

        def solve(gradients: Array) -> Array:
            by_class = gradients.swapaxes(0, 1)  # [C, k, C + 1]
            inside = by_class @ along  # [C, k, K]
            rest = (by_class - inside @ turned) / diagonal[:, None]
            flat = inside.swapaxes(0, 1).reshape(len(gradients), -1)
            solved = cho_solve(root, flat.T, check_finite=False).T
            steps = solved.reshape(len(gradients), len(along), -1).swapaxes(0, 1) - rest @ along
            return (rest + steps @ turned).swapaxes(0, 1)

        return solve
