"""Stable float64 softmax, on any device: compiled on the CPU, torch elsewhere.

All calibrators that end in a softmax use these functions, so the rule is in one place: subtract
the row's maximum first, compute in float64 whatever the logits' type, never return a probability
that was rounded in float32 (a good classifier would say exactly 1 in a quarter of the rows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.threads import over_blocks, row_blocks


@partial(compiled, fastmath={"contract"})
def exponential(x: Any) -> Any:
    """exp(x) for x <= 0 with a relative error of 3.5e-16, in a form that compilers vectorise.

    x = k ln 2 + r with |r| <= ln(2)/2, a Taylor polynomial of degree 12 in r (remainder 1.7e-16),
    and 2^k written into the exponent bits. Below -708, where doubles leave their normal range, 0.
    The C library's exp would be called once per element.
    """
    clipped = max(x, -708.0)
    k = np.floor(clipped * 1.4426950408889634 + 0.5)
    # ln 2 in two parts, the first short enough that its product with k is exact.
    r = clipped - k * 6.93147180369123816490e-01
    r = r - k * 1.90821492927058770002e-10
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power_of_two = np.int64((np.int64(k) + 1023) << 52)
    value = p * power_of_two.view(np.float64)
    return value if x > -708.0 else 0.0


@compiled_sums
def softmax_rows(logits: Any, scale: float, out: Any) -> None:
    """Write softmax(scale * logits) to `out`, row by row; scale > 0."""
    for i in range(logits.shape[0]):
        row = logits[i]
        target = out[i]
        largest = row[0]
        for j in range(row.size):
            largest = max(largest, row[j])
        total = 0.0
        for j in range(row.size):
            value = exponential(scale * (np.float64(row[j]) - np.float64(largest)))
            target[j] = value
            total += value
        factor = 1.0 / total
        for j in range(row.size):
            target[j] *= factor


@compiled_sums
def residual_rows(logits: Any, labels: Any, weights: Any) -> float:
    """Overwrite `logits` with softmax - one-hot; return the sum of -log softmax at the labels.

    That is the gradient of the summed cross-entropy by the logits; row i of both counts weights[i]
    times. The arithmetic is float64 also where the array is float32.
    """
    classes = logits.shape[1]
    values = np.empty(classes)
    loss = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = row[0]
        for j in range(classes):
            largest = max(largest, row[j])
        total = 0.0
        of_label = np.float64(row[labels[i]]) - np.float64(largest)
        for j in range(classes):
            value = exponential(np.float64(row[j]) - np.float64(largest))
            values[j] = value
            total += value
        factor = 1.0 / total
        share = weights[i]
        for j in range(classes):
            row[j] = share * (values[j] * factor)
        row[labels[i]] -= share
        loss += share * (math.log(total) - of_label)
    return loss


@compiled_sums
def squared_error_rows(logits: Any, labels: Any, weights: Any) -> float:
    """Overwrite `logits` with the gradient of the summed Brier score; return that sum.

    With p the softmax and y one-hot, the score is Σ (p - y)² and its gradient by logit j is
    2 p_j (p_j - y_j - Σ_k p_k (p_k - y_k)); row i of both counts weights[i] times. The arithmetic
    is float64 also where the array is not.
    """
    classes = logits.shape[1]
    values = np.empty(classes)
    score = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        label = labels[i]
        largest = row[0]
        for j in range(classes):
            largest = max(largest, row[j])
        total = 0.0
        for j in range(classes):
            value = exponential(np.float64(row[j]) - np.float64(largest))
            values[j] = value
            total += value
        factor = 1.0 / total
        squares = rest = 0.0
        for j in range(classes):
            p = values[j] * factor
            values[j] = p
            squares += p * p
            rest += p if j != label else 0.0
        of_label = values[label]
        pull = squares - of_label
        share = weights[i]
        for j in range(classes):
            row[j] = share * (2.0 * values[j] * (values[j] - pull))
        row[label] = share * (2.0 * of_label * (-rest - pull))
        # Σ (p - y)² with 1 - p at the label added up from the others: exact also where p is 1.
        score += share * (squares - of_label * of_label + rest * rest)
    return score


def has_kernels(tensor: Tensor) -> bool:
    """Whether the compiled kernels can read `tensor`: on the CPU, float32 or float64."""
    return tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)


def softmax(logits: Tensor, scale: float = 1.0) -> Tensor:
    """Return softmax(scale * logits) of `logits` [n, C] in float64 on its device; scale > 0."""
    n, classes = logits.shape
    out = torch.empty(n, classes, dtype=torch.float64, device=logits.device)
    if has_kernels(logits):
        values, target = logits.contiguous().numpy(), out.numpy()
        over_blocks(
            lambda start, stop: softmax_rows(values[start:stop], scale, target[start:stop]),
            row_blocks(n, classes),
        )
        return out
    for start, stop in row_blocks(n, classes, 1 << 24):
        block = logits[start:stop].double()
        block = (block - block.amax(dim=1, keepdim=True)) * scale
        torch.softmax(block, dim=1, out=out[start:stop])
    return out


def row_weights(weights: Tensor | None, logits: Tensor) -> Tensor:
    """`weights` as float64 [n] beside `logits` [n, C]; ones without."""
    if weights is None:
        return torch.ones(len(logits), dtype=torch.float64, device=logits.device)
    return weights.to(logits.device, torch.float64)


def residuals(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """Overwrite `logits` [n, C] with softmax - one-hot; return the summed cross-entropy.

    Row i of both counts weights[i] times, `weights` [n].
    """
    n, classes = logits.shape
    shares = row_weights(weights, logits)
    if has_kernels(logits) and logits.is_contiguous():
        return _sum_of_rows(residual_rows, logits, labels, shares)
    loss = torch.zeros((), dtype=torch.float64, device=logits.device)
    for start, stop in row_blocks(n, classes, 1 << 24):
        log_p = torch.log_softmax(logits[start:stop].double(), dim=1)
        at, share = labels[start:stop, None], shares[start:stop]
        loss -= log_p.gather(1, at)[:, 0] @ share
        block = log_p.exp_()
        block.scatter_add_(1, at, torch.full_like(at, -1, dtype=torch.float64))
        logits[start:stop] = block * share[:, None]
    return float(loss)


def squared_errors(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """Overwrite `logits` [n, C] with the summed Brier score's gradient; return that score.

    Row i of both counts weights[i] times, `weights` [n].
    """
    n, classes = logits.shape
    shares = row_weights(weights, logits)
    if has_kernels(logits) and logits.is_contiguous():
        return _sum_of_rows(squared_error_rows, logits, labels, shares)
    score = torch.zeros((), dtype=torch.float64, device=logits.device)
    for start, stop in row_blocks(n, classes, 1 << 24):
        p = torch.softmax(logits[start:stop].double(), dim=1)
        away = p.clone()
        at, share = labels[start:stop, None], shares[start:stop]
        away.scatter_add_(1, at, torch.full_like(at, -1, dtype=torch.float64))
        score += away.square().sum(dim=1) @ share
        slope = 2 * p * (away - (p * away).sum(dim=1, keepdim=True))
        logits[start:stop] = slope * share[:, None]
    return float(score)


def _sum_of_rows(
    kernel: Callable[..., float], logits: Tensor, labels: Tensor, weights: Tensor
) -> float:
    """What `kernel` returns for blocks of rows, added up."""
    values, codes, shares = logits.numpy(), labels.numpy(), weights.numpy()

    def work(start: int, stop: int) -> float:
        part = slice(start, stop)
        return float(kernel(values[part], codes[part], shares[part]))

    return math.fsum(over_blocks(work, row_blocks(*logits.shape)))
