"""Fitted calibrators as torch modules of fixed arrays, for deployment.

`calibrator.to_module()` returns such a module. It maps logits [n, C] to probabilities [n, C] for
any batch size, on the module's device. The modules use plain torch operations that `torch.export`
and the ONNX exporter accept, so an exported file runs without this repository. Everything is
computed in the type of the module's arrays, float32 by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from metrics.scores import LIKELIHOOD_FLOOR


def constant(values: ArrayLike, dtype: torch.dtype) -> Tensor:
    """Return `values` as a tensor that shares no memory with them."""
    return torch.tensor(values, dtype=dtype)


class OfProbabilities(nn.Module):
    """Takes probabilities, and gives their logarithm (with a floor) to a module of logits."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, probabilities: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        calibrated: Tensor = self.module(probabilities.clamp(min=LIKELIHOOD_FLOOR).log())
        return calibrated


class ScaledSoftmax(nn.Module):
    """softmax(w ⊙ z + b): the uncalibrated model, temperature scaling and vector scaling."""

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.scale, self.shift = nn.Buffer(scale), nn.Buffer(shift)

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        return torch.softmax(logits.to(self.scale.dtype) * self.scale + self.shift, dim=1)


class LinearSoftmax(nn.Module):
    """softmax(W x + b)."""

    def __init__(self, matrix: Tensor, intercept: Tensor) -> None:
        super().__init__()
        self.matrix, self.intercept = nn.Buffer(matrix), nn.Buffer(intercept)

    def forward(self, inputs: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        x = inputs.to(self.matrix.dtype)
        return torch.softmax(x @ self.matrix.T + self.intercept, dim=1)


class PiecewiseLinearMaps(nn.Module):
    """Isotonic regression: a map of the softmax probabilities per class, or one map for all.

    Args:
        thresholds, values: the maps' points, one map after the other.
        offsets: map c lies from offsets[c] to offsets[c + 1]; there is one map, or one per class.
        normalize: divide rows by their sum; a row of zeros becomes uniform.
        tie_break: this number times the softmax is added to the mapped values.
        dtype: number type of the arrays. They are [maps, K]; unused places of `thresholds` hold
            infinity. A row takes C · K comparisons, because ONNX has no binary search.
    """

    def __init__(
        self,
        thresholds: NDArray[Any],
        values: NDArray[Any],
        offsets: NDArray[Any],
        normalize: bool,
        tie_break: float,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        sizes = np.diff(offsets).tolist()
        x = torch.full((len(sizes), max(sizes) + 1), torch.inf, dtype=dtype)
        level = torch.zeros_like(x)
        for c, (start, size) in enumerate(zip(offsets.tolist(), sizes, strict=False)):
            x[c, :size] = constant(thresholds[start : start + size], dtype)
            level[c, :size] = constant(values[start : start + size], dtype)
            level[c, size:] = level[c, size - 1]
        self.thresholds, self.values = nn.Buffer(x), nn.Buffer(level)
        self.normalize = normalize
        self.tie_break = tie_break

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        x: Tensor = self.thresholds
        level: Tensor = self.values
        p = torch.softmax(logits.to(x.dtype), dim=1)
        passed = (p[:, :, None] >= x[None]).sum(dim=2)
        left = (passed - 1).clamp(min=0) + torch.arange(x.shape[0], device=x.device) * x.shape[1]
        x, level = x.flatten(), level.flatten()
        start, stop = x[left], x[left + 1]
        share = ((p - start) / (stop - start)).clamp(0, 1)
        mapped = level[left] + share * (level[left + 1] - level[left]) + self.tie_break * p
        if not self.normalize:
            return mapped
        total = mapped.sum(dim=1, keepdim=True)
        evenly = torch.full_like(mapped, 1 / mapped.shape[1])
        return torch.where(total > 0, mapped / torch.where(total > 0, total, 1), evenly)


def order_of(values: Tensor, tied: float) -> Tensor:
    """Return the classes of each row in descending order of `values`, by number if tied: [n, C].

    Neighbours in this order that are no further than `tied` apart are tied.
    """
    classes = values.shape[1]
    ranked, order = torch.sort(values, dim=1, descending=True)
    starts = (ranked[:, :-1] - ranked[:, 1:] > tied).to(torch.int64)
    group = torch.nn.functional.pad(starts, (1, 0)).cumsum(dim=1)
    # One number per class orders by group, then by class.
    return torch.sort(group * classes + order, dim=1).values % classes
