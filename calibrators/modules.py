"""Fitted calibrators as torch modules of fixed arrays, for deployment.

`calibrator.to_module()` returns such a module. It maps logits [n, C] to probabilities [n, C] in the
type of its arrays, by plain torch operations that `torch.export` and the ONNX exporter accept. So
an exported file runs without this repository.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR


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


def floored_log(p: Tensor) -> Tensor:
    """Return ln max(p, 1e-12)."""
    return p.clamp(min=LIKELIHOOD_FLOOR).log()


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


class ConditionedModule(nn.Module):
    """`Conditioning.predicted` for a calibrator's module, in operations that exporters accept."""

    present: Tensor
    kept: Tensor

    def __init__(self, known: Any, module: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.known, self.module, self.dtype = known, module, dtype
        self.register_buffer("present", torch.as_tensor(known.present))
        self.register_buffer("kept", torch.as_tensor(known.kept).to(dtype))

    def _filled(self, z: Tensor) -> tuple[Tensor, Tensor]:
        known = self.known
        top = z.amax(dim=1, keepdim=True)
        below = z - top
        marked = ((z <= known.zero) | (-below >= known.gap)) & (below < 0)
        rest = torch.where(marked, -math.inf, known.beta * below).logsumexp(dim=1, keepdim=True)
        return torch.where(marked, top + (rest + known.log_share) / known.beta, z), marked

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        known, logits, present = self.known, logits.to(self.dtype), self.present
        z, marked = self._filled(logits)
        if len(present) == z.shape[1]:
            p = self.module(z)
        else:
            p = torch.softmax(known.beta * z, dim=1)
            if len(present) > 1:
                p = p * self.kept
                p = p / p.sum(dim=1, keepdim=True)
                own = self.module(z)[:, present] if known.whole else self.module(z[:, present])
                if known.whole:
                    own = own / own.sum(dim=1, keepdim=True).clamp(min=LIKELIHOOD_FLOOR)
                own = own * p[:, present].sum(dim=1, keepdim=True)
                p = p.index_copy(1, present, own).clamp(max=1.0)  # rounding may exceed 1
        never = marked if known.log_weight == -math.inf else torch.isneginf(logits)
        rest = torch.where(never, 0.0, p)  # and a row's other classes share its sum
        rest = torch.where(rest.sum(dim=1, keepdim=True) > 0, rest, (~never).to(p.dtype))
        return (rest * (p.sum(dim=1, keepdim=True) / rest.sum(dim=1, keepdim=True))).clamp(max=1.0)


class Reweighted(nn.Module):
    """`prior.reweighted` after a calibrator's module."""

    factors: Tensor

    def __init__(self, module: nn.Module, factors: ArrayLike, dtype: torch.dtype) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("factors", torch.tensor(factors, dtype=dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        p = self.module(logits)
        moved = p * self.factors
        total = moved.sum(dim=1, keepdim=True)
        scaled = moved * (p.sum(dim=1, keepdim=True) / total.clamp(min=torch.finfo(p.dtype).tiny))
        return torch.where(total > 0, scaled, p)
