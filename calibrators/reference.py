"""Algorithm 1 of the paper (app. A) in plain NumPy, float64: the page to read beside it.

The oracle of the tests of `calibrators.patching`, which finds the same patches fast. Throughout:
p = f(X) [n, C], y labels [n], v the predicted and u the realized utility [n] of one utility, u⃗ its
vectors [n, C]. Utilities are U_CWE ∪ U_topK (sec. 3.2), 0 … C-1 the classes and then K = 1 … C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrics.reference import Floats, Labels, predicted_and_realized, projection, worst_interval

TIED, TIED_RANKS, EQUAL = 1e-6, 2.5e-7, 1e-10
"""v this close are tied, and p within a row; errors this close are equal. What rounding must not
decide; the paper's algorithm has 0 for all three."""


class Patch(NamedTuple):
    """Points with low <= v <= high of utility number `utility` took a step η along -ξ u⃗."""

    utility: int
    low: float
    high: float
    xi: int
    eta: float
    error: float


def tied_order(p: Floats, tied: float = TIED_RANKS) -> NDArray[np.int64]:
    """The classes of each row in descending order of p, by number where neighbours are tied."""
    order = np.argsort(-p, axis=1, kind="stable")
    gaps = -np.diff(np.take_along_axis(p, order, axis=1), axis=1)
    group = np.zeros_like(order)
    np.put_along_axis(group, order[:, 1:], np.cumsum(gaps > tied, axis=1), axis=1)
    return np.argsort(group, axis=1, kind="stable")


def utility_vectors(order: NDArray[np.int64], number: int) -> Floats:
    """u⃗ = 1{j = c} of U_CWE (Example 3.4), or 1{rank(p, j) <= K} of U_topK (Example 3.6)."""
    n, classes = order.shape
    vectors = np.zeros((n, classes))
    chosen = np.full((n, 1), number) if number < classes else order[:, : number - classes + 1]
    np.put_along_axis(vectors, chosen, 1.0, axis=1)
    return vectors


def algorithm_1(
    p: Floats,
    y: Labels,
    steps: int,
    epsilon: float = 1e-4,
    step_size: float = 1.0,
    armijo: float = 0.5,
) -> tuple[Floats, list[Patch]]:
    """Return f^(T) on the calibration points and the patches that lead there, T <= `steps`."""
    n, classes = p.shape
    outcome = np.eye(classes)[y]
    patches: list[Patch] = []
    while len(patches) < steps:
        # Lines 3, 4: w = ξ u⃗ 1{v in I} of largest err = E<f(X) - Y, w(f(X))>; of equals the first.
        order, worst = tied_order(p), []
        for number in range(2 * classes):
            v, u = predicted_and_realized(utility_vectors(order, number), p, y)
            worst.append(worst_interval(v, u, TIED))
        errors = np.array([error for error, *_ in worst])
        number = int(np.argmax(errors >= errors.max() - EQUAL))
        error, first, last, xi = worst[number]
        # Line 5.
        if error <= epsilon:
            break
        # The interval ends in the middle of the gaps around it.
        vectors = utility_vectors(order, number)
        v, _ = predicted_and_realized(vectors, p, y)
        low = (first + max(v[v < first], default=-np.inf)) / 2
        high = (last + min(v[v > last], default=np.inf)) / 2
        inside = (low <= v) & (v <= high)
        # Line 8: Armijo's backtracking on the Brier score, from a step that is at most four times
        # the best one without the simplex's borders, err / E[‖u⃗ - mean u⃗‖² 1{v in I}].
        centred = vectors - vectors.mean(axis=1, keepdims=True)
        best = n * error / np.square(centred[inside]).sum()
        eta = step_size
        while eta > 4 * best:
            eta /= 2
        while True:
            moved = projection(p[inside] - eta * xi * vectors[inside])
            displaced = moved - p[inside]
            slope = 2 * np.sum((p - outcome)[inside] * displaced)
            change = slope + np.square(displaced).sum()
            if slope < 0 and change <= armijo * slope:
                break
            eta /= 2
        # Line 9: f ← Π(f - η w).
        p = p.copy()
        p[inside] = moved
        patches.append(Patch(number, low, high, xi, eta, error))
    return p, patches
