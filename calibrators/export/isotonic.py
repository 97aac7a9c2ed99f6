"""Isotonic maps as a torch module."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class IsotonicModule(nn.Module):
    """The maps as tables [maps, K], whose unused thresholds are infinite.

    A row takes C · K comparisons, because ONNX has no binary search.
    """

    thresholds: Tensor
    values: Tensor

    def __init__(self, fitted: Any, dtype: torch.dtype) -> None:
        super().__init__()
        sizes = np.diff(fitted.offsets_).tolist()
        x = torch.full((len(sizes), max(sizes) + 1), torch.inf, dtype=dtype)
        level = torch.zeros_like(x)
        for c, (start, size) in enumerate(zip(fitted.offsets_.tolist(), sizes, strict=False)):
            points = slice(start, start + size)
            x[c, :size] = torch.tensor(fitted.thresholds_[points], dtype=dtype)
            level[c, :size] = torch.tensor(fitted.values_[points], dtype=dtype)
            level[c, size:] = level[c, size - 1]
        self.register_buffer("thresholds", x)
        self.register_buffer("values", level)
        self.normalize, self.tie_break = bool(fitted.normalize), float(fitted.tie_break)

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        x, level = self.thresholds, self.values
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
