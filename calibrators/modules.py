"""Fitted calibrators as torch modules of fixed arrays, for deployment.

`calibrator.to_module()` returns such a module. It maps logits [n, C] to probabilities [n, C] in the
type of its arrays, by plain torch operations that `torch.export` and the ONNX exporter accept. So
an exported file runs without this repository.
"""

from collections.abc import Callable

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn


class Applied(nn.Module):
    """A function of tensors [n, C] as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, inputs: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        return self.function(inputs)


class AffineSoftmax(nn.Module):
    """softmax(w ⊙ x + b), or softmax(W x + b), for a number or vector w, or a matrix W [C, C]."""

    scale: Tensor
    shift: Tensor

    def __init__(self, scale: ArrayLike, shift: ArrayLike, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale, dtype=dtype))
        self.register_buffer("shift", torch.tensor(shift, dtype=dtype))

    def forward(self, inputs: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        x = inputs.to(self.scale.dtype)
        mapped = x @ self.scale.T if self.scale.dim() == 2 else x * self.scale
        return torch.softmax(mapped + self.shift, dim=1)


def plain_log(p: Tensor) -> Tensor:
    """Return ln p; -inf for 0, and for what rounding made negative."""
    return p.clamp(min=0).log()


def log_mixture(q: Tensor, share: float) -> Tensor:
    """Return ln((1 - share) q + share / C) of probabilities `q` [n, C]."""
    return q.mul(1 - share).add_(share / q.shape[1]).log()


def order_of(values: Tensor, tied: float) -> Tensor:
    """Return `descending_order` of metrics/kernels/ranks.py in operations that exporters accept."""
    classes = values.shape[1]
    ranked, order = torch.sort(values, dim=1, descending=True)
    starts = (ranked[:, :-1] - ranked[:, 1:] > tied).to(torch.int64)
    group = torch.nn.functional.pad(starts, (1, 0)).cumsum(dim=1)
    # One number per class orders by group, then by class.
    return torch.sort(group * classes + order, dim=1).values % classes
