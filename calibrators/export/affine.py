"""Softmax of an affine map as a torch module, and what comes before it."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn


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


class MixedWithUniform(nn.Module):
    """ln((1 - ε) softmax(β z) + ε / C) of logits z, the inputs of the structured maps."""

    def __init__(self, beta: float, share: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.softmax, self.share = AffineSoftmax(beta, 0.0, dtype), share

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        return log_mixture(self.softmax(logits), self.share)


def log_mixture(q: Tensor, share: float) -> Tensor:
    """Return ln((1 - share) q + share / C) of probabilities `q` [n, C]."""
    return q.mul(1 - share).add_(share / q.shape[1]).log()


def after_mixture(beta: float, share: float, module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Return `module` behind `MixedWithUniform`."""
    return nn.Sequential(MixedWithUniform(beta, share, dtype), module)


def after_log_softmax(module: nn.Module) -> nn.Module:
    """Return `module` with log-probabilities as its inputs."""
    return nn.Sequential(nn.LogSoftmax(dim=1), module)
