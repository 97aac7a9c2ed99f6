"""What every calibrator's module does before and after the map that the calibrator learned."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from ..inputs import FLOAT32_STEPS, SMALLEST_POSITIVE


def module_of(calibrator: Any, dtype: torch.dtype | None = None) -> nn.Module:
    """Return the module of a fitted calibrator, with arrays of type `dtype`, float32 by default."""
    dtype = torch.float32 if dtype is None else dtype
    learned = calibrator._conditioning()
    if learned is not None and len(learned.present) == 1:
        module: nn.Module = nn.Identity()  # there was one class, so the fit learned nothing
    else:
        module = calibrator._to_module(dtype)
    if learned is not None:
        module = ConditionedModule(learned, module, dtype)
    if calibrator.inputs != "logits" and calibrator.is_learned:
        module = nn.Sequential(Floored(), module)
    if calibrator.inputs == "probabilities":
        module = nn.Sequential(PlainLog(), module)
    return module.eval()


class PlainLog(nn.Module):
    """ln p; -inf for 0, and for what rounding made negative."""

    def forward(self, p: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        return p.clamp(min=0).log()


class Floored(nn.Module):
    """`inputs.floored`, in operations that exporters accept."""

    def forward(self, log_probabilities: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        floor = math.log(LIKELIHOOD_FLOOR)
        is_raised = (log_probabilities - floor).abs() <= FLOAT32_STEPS
        above = log_probabilities.clamp(min=math.log(SMALLEST_POSITIVE))
        return torch.where(is_raised | torch.isneginf(log_probabilities), floor, above)


class ConditionedModule(nn.Module):
    """`Conditioning.predicted` for a calibrator's module, in operations that exporters accept."""

    present: Tensor
    factors: Tensor

    def __init__(self, learned: Any, module: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.learned, self.module, self.dtype = learned, module, dtype
        self.register_buffer("present", torch.as_tensor(learned.present))
        self.register_buffer("factors", torch.as_tensor(learned.factors).to(dtype))

    def _filled(self, z: Tensor) -> tuple[Tensor, Tensor]:
        learned = self.learned
        top = z.amax(dim=1, keepdim=True)
        below = z - top
        marked = ((z <= learned.zero) | (-below >= learned.gap)) & (below < 0)
        rest = torch.where(marked, -math.inf, learned.beta * below).logsumexp(dim=1, keepdim=True)
        return torch.where(marked, top + (rest + learned.log_share) / learned.beta, z), marked

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        learned, logits, present = self.learned, logits.to(self.dtype), self.present
        z, marked = self._filled(logits)
        if len(present) == z.shape[1]:
            p = self.module(z)
        else:
            p = torch.softmax(learned.beta * z, dim=1)
            if len(present) > 1:
                p = p * self.factors
                p = p / p.sum(dim=1, keepdim=True)
                mapped = self.module(z)[:, present] if learned.whole else self.module(z[:, present])
                if learned.whole:
                    mapped = mapped / mapped.sum(dim=1, keepdim=True).clamp(min=LIKELIHOOD_FLOOR)
                mapped = mapped * p[:, present].sum(dim=1, keepdim=True)
                p = p.index_copy(1, present, mapped).clamp(max=1.0)  # rounding may exceed 1
        never = marked if learned.log_weight == -math.inf else torch.isneginf(logits)
        rest = torch.where(never, 0.0, p)  # and a row's other classes share its sum
        rest = torch.where(rest.sum(dim=1, keepdim=True) > 0, rest, (~never).to(p.dtype))
        return (rest * (p.sum(dim=1, keepdim=True) / rest.sum(dim=1, keepdim=True))).clamp(max=1.0)
