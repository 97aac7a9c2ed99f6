"""Patches as a torch module."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from utility_calibration.metrics.errors import InputError

from ..patching.algorithm import Patch
from ..patching.state import TIED_RANKS
from .order import order_of


def projected_rows(points: Tensor) -> Tensor:
    """Return the nearest point of the simplex to each row of `points`: [k, C]."""
    ordered = points.sort(dim=1, descending=True).values
    excess = ordered.cumsum(dim=1) - 1
    count = torch.arange(1, points.shape[1] + 1, device=points.device, dtype=points.dtype)
    active = (ordered * count > excess).sum(dim=1, keepdim=True)
    tau = excess.gather(1, active - 1) / active
    return (points - tau).clamp(min=0)


class PatchedModule(nn.Module):
    """Patches on the probabilities of `start`: `Patch.apply` of patching/algorithm.py.

    In float32 only those points move differently that are nearer to an interval's end than
    rounding. Rows move by Euclidean projection (`projected`) or by tilting. `InputError` if a patch
    belongs to a utility of the user, which is code and not an array.
    """

    payoffs: Tensor
    numbers: Tensor

    def __init__(
        self,
        start: nn.Module,
        patches: Sequence[Patch],
        classes: int,
        projected: bool,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        utilities = [patch.utility for patch in patches]
        if any(utility.kind == "own" for utility in utilities):
            raise InputError(
                "patches of `utilities` are not arrays",
                field="to_module",
                fixes="fit with utilities=None",
            )
        self.start, self.projected = start, projected
        self.by_rank = [utility.by_rank for utility in utilities]
        payoffs = np.zeros((len(utilities), classes))
        for row, utility in zip(payoffs, utilities, strict=True):
            row[:] = utility.payoff(classes)
        numbers = [(patch.low, patch.high, patch.shift) for patch in patches]
        self.register_buffer("payoffs", torch.tensor(payoffs, dtype=dtype))
        self.register_buffer("numbers", torch.tensor(numbers, dtype=torch.float64).to(dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        p: Tensor = self.start(logits)
        for number, by_rank in enumerate(self.by_rank):
            vector = self.payoffs[number]
            order = order_of(p, TIED_RANKS) if by_rank else None
            vectors = vector.expand_as(p) if order is None else vector[order.argsort(dim=1)]
            v = (p * vectors).sum(dim=1, keepdim=True)
            low, high, shift = self.numbers[number].unbind()
            push = shift * vectors
            if self.projected:
                moved = projected_rows(p + push)
            else:
                moved = p * torch.exp(push - push.amax(dim=1, keepdim=True))
                moved = moved / moved.sum(dim=1, keepdim=True)
            p = torch.where((v >= low) & (v <= high), moved, p)
        return p
