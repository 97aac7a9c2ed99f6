"""Fitted patches as a torch module of fixed arrays, for `torch.export` and ONNX.

The rules are those of `algorithm.Patch.apply`, in operations that both exporters accept. Intervals
end in the middle of gaps of v, and near-equal probabilities are ranked by class. So in float32 only
those points move differently that are nearer to an interval's end than rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from calibrators.patching.algorithm import Patch
from calibrators.patching.state import TIED_RANKS
from calibrators.patching.utilities import PayoffUtility
from metrics.kernels.projection import project_rows_torch
from metrics.validation import InputError


class PatchedModule(nn.Module):
    """Logits [n, C] to patched probabilities [n, C].

    Args:
        start: the module whose probabilities are patched.
        patches: in the order of their application; their payoffs are by class or by rank.
        projected: whether rows move by Euclidean projection (as in the paper) or by tilting.
        dtype: the number type of all arrays.

    Raises:
        InputError: a patch belongs to a utility of the user, which is code and not an array.
    """

    payoffs: Tensor
    lows: Tensor
    highs: Tensor
    steps: Tensor

    def __init__(
        self, start: nn.Module, patches: Sequence[Patch], projected: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        utilities = [patch.utility for patch in patches]
        payoffs = [utility for utility in utilities if isinstance(utility, PayoffUtility)]
        if len(payoffs) < len(patches):
            raise InputError(
                "to_module: patches of `utilities` are not arrays; fit with utilities=None"
            )
        self.start = start
        self.projected = projected
        self.by_rank = [utility.by_rank for utility in payoffs]
        table = torch.stack([utility.payoff for utility in payoffs]) if payoffs else torch.empty(0)
        self.register_buffer("payoffs", table.to(dtype))
        for name, values in (
            ("lows", [patch.low for patch in patches]),
            ("highs", [patch.high for patch in patches]),
            ("steps", [patch.step for patch in patches]),
        ):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64).to(dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        p: Tensor = self.start(logits)
        for number, by_rank in enumerate(self.by_rank):
            vector = self.payoffs[number]
            vectors = vector[_places(p)] if by_rank else vector.expand_as(p)
            v = (p * vectors).sum(dim=1, keepdim=True)
            inside = (v >= self.lows[number]) & (v <= self.highs[number])
            p = torch.where(inside, self._moved(p, self.steps[number] * vectors), p)
        return p

    def _moved(self, p: Tensor, push: Tensor) -> Tensor:
        if self.projected:
            return project_rows_torch(p + push)
        tilted = p * torch.exp(push - push.amax(dim=1, keepdim=True))
        return tilted / tilted.sum(dim=1, keepdim=True)


def _places(p: Tensor) -> Tensor:
    """Return each class's place in descending order of p, or of class if near-equal: [n, C]."""
    classes = p.shape[1]
    ranked, order = torch.sort(p, dim=1, descending=True)
    starts = (ranked[:, :-1] - ranked[:, 1:] > TIED_RANKS).to(torch.int64)
    group = torch.nn.functional.pad(starts, (1, 0)).cumsum(dim=1)
    # One number per class orders by group, then by class.
    sorted_by = torch.sort(group * classes + order, dim=1).values
    return torch.sort(sorted_by % classes, dim=1).indices
