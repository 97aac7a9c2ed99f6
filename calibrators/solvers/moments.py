"""The loss of softmax(β z) with its slope and curvature by β, from one pass over the logits.

The kernel takes `LANES` rows at a time, turned so that class j of all of them lies side by side.
Each sum over the classes is then made in the order of the classes, in the lane of its row, and the
compiler works on several lanes at once. So the sums are the same bits on every processor.
"""

from typing import Any, NamedTuple

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.softmax import exponential
from utility_calibration.metrics.kernels.threads import over_blocks, row_blocks

from ..losses import Loss, row_weights

EPS = float(np.finfo(np.float64).eps)
BLOCK = 1 << 18  # logits per block, which one thread works on
LANES = 32


class Moments(NamedTuple):
    """The mean loss at one β, its first two derivatives, and the slope that rounding can make."""

    loss: float
    slope: float
    curvature: float
    rounding: float


@compiled
def power_sums(logits: Any, labels: Any, beta: float, sums: Any) -> None:
    """Write seven numbers of each row to `sums` [7, n].

    With d = z - max z and e = exp(βd) these are Σ e, Σ e d, Σ e d², Σ e², Σ e² d, Σ e² d², and d of
    the label. A logit of -inf adds nothing, also where β is 0.
    """
    classes = logits.shape[1]
    turned = np.zeros((classes, LANES))
    largest = np.empty(LANES)
    row_sums = np.empty((6, LANES))
    # Rows with names of their own: indices of one matrix took four times as long to compile.
    total, first, second = row_sums[0], row_sums[1], row_sums[2]
    squares, first_of_squares, second_of_squares = row_sums[3], row_sums[4], row_sums[5]
    for start in range(0, logits.shape[0], LANES):
        rows = min(LANES, logits.shape[0] - start)
        for r in range(rows):
            for j in range(classes):
                turned[j, r] = logits[start + r, j]
        largest[:] = -np.inf
        for j in range(classes):
            column = turned[j]
            for r in range(LANES):
                largest[r] = max(largest[r], column[r])
        row_sums[:] = 0.0
        for j in range(classes):
            column = turned[j]
            for r in range(LANES):
                d = column[r] - largest[r]
                is_finite = d > -np.inf
                d = d if is_finite else 0.0
                column[r] = d
                e = exponential(beta * d) if is_finite else 0.0
                total[r] += e
                first[r] += e * d
                second[r] += e * d * d
                e *= e
                squares[r] += e
                first_of_squares[r] += e * d
                second_of_squares[r] += e * d * d
        for r in range(rows):
            for k in range(6):
                sums[k, start + r] = row_sums[k, r]
            sums[6, start + r] = turned[labels[start + r], r]


def _nll_terms(sums: Array, beta: float) -> Array:
    """Return -log p_y, its two derivatives by β and the size of the slope's terms: [4, n].

    `sums` are the `power_sums`, and p = softmax(βd). The slope is Σ p d - d_y, the curvature the
    variance of d under p.
    """
    total, first, second = sums[:3]
    label_gap = sums[6]
    mean = first / total
    variance = np.maximum(second / total - mean * mean, 0)
    loss = np.log(total) - beta * label_gap
    return np.stack([loss, mean - label_gap, variance, np.abs(mean) + np.abs(label_gap)])


def _brier_terms(sums: Array, beta: float) -> Array:
    """Return Σ (p - y)², its two derivatives by β and the size of the slope's terms: [4, n].

    `sums` are the `power_sums`. Let p = softmax(βd), m = Σ p d, v = Σ p d² - m², q_k = Σ p² d^k and
    y the label. The score is q_0 - 2 p_y + 1, half its slope q_1 - m q_0 - p_y (d_y - m), and half
    its curvature 2 (q_2 - 2 m q_1 + m² q_0) - v q_0 - p_y ((d_y - m)² - v).
    """
    total = sums[0]
    m = sums[1] / total
    v = sums[2] / total - m * m
    q0, q1, q2 = sums[3:6] / (total * total)
    p_label, away = np.exp(beta * sums[6]) / total, sums[6] - m
    score = q0 - 2 * p_label + 1
    slope = 2 * (q1 - m * q0 - p_label * away)
    curved = 2 * (q2 - 2 * m * q1 + m * m * q0) - v * q0 - p_label * (away * away - v)
    size = 2 * (np.abs(q1) + np.abs(m * q0) + np.abs(p_label * away))
    return np.stack([score, slope, 2 * curved, size])


def moments(
    logits: Array, labels: Array, beta: float, loss: Loss = "nll", weights: Array | None = None
) -> Moments:
    """Return the `Moments` of `logits` [n, C], `labels`, `weights` [n] at `beta`, in float64.

    A logit of -inf, which no label may have, has the probability 0 for every β, 0 included.
    """
    terms = _nll_terms if loss == "nll" else _brier_terms
    shares = row_weights(weights, logits)

    def of_rows(start: int, stop: int) -> Array:
        block = np.ascontiguousarray(logits[start:stop])
        sums = np.empty((7, len(block)))
        power_sums(block, labels[start:stop], beta, sums)
        return (terms(sums, beta) * shares[start:stop]).sum(axis=1)

    blocks = row_blocks(len(logits), logits.shape[1], BLOCK)
    totals = np.sum(over_blocks(of_rows, blocks), axis=0)
    mean, slope, curvature, size = (totals / float(shares.sum())).tolist()
    return Moments(mean, slope, curvature, 4 * EPS * size)
