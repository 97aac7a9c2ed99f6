"""Another update for Algorithm 1: exponential tilting, f_j ← f_j exp(ν δ u⃗_j) / Z.

For an event (a class, or the K most probable classes) this shifts the logit of its probability v by
ν δ. The classes inside the event keep their proportions, and so do those outside it. δ minimises
the NLL of the witness's points, a convex problem in one dimension. The proofs are in
docs/methods/logit_shift.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibrators.patching.audit import Witness
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import Step
from calibrators.patching.utilities import Vectors
from calibrators.solvers.root import solve_increasing

LARGEST_SHIFT = 5.0
"""Bound of |δ| times the range of u⃗. If the event happens at all points or at none, the best δ is
infinite."""
ROUNDING = 1e-13
"""Mean residuals of at most this share of the range of u⃗ count as zero."""


@dataclass(frozen=True)
class ExponentialTilting:
    """An update that lowers the NLL. Probabilities stay positive, so there is no projection.

    Args:
        shrinkage: ν in (0, 1], the share of δ that a patch applies.
    """

    shrinkage: float

    def loss(self, state: PatchedForecast) -> float:
        """Return the NLL."""
        return float(state.losses("nll").mean())

    def step(self, state: PatchedForecast, witness: Witness, vectors: Vectors) -> Step | None:
        """Return ν |δ|. δ has the sign of -ξ: it raises a predicted utility that was too low."""
        problem = TiltProblem.of(state, witness, vectors)
        if not problem.span > 0:
            return None
        bound = LARGEST_SHIFT / problem.span
        delta, _ = solve_increasing(problem.excess, 0.0, -bound, bound)
        size = self.shrinkage * abs(delta)
        return Step(size, problem.change(-witness.sign * size))

    def moved(self, state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
        """Return p_j exp(step u⃗_j) / Z of `rows`."""
        p = state.probabilities[rows]
        exponents = step * vectors.table
        if vectors.by_rank:
            places = state.order[rows][:, : exponents.shape[1]].to(torch.int64)
            p.scatter_(1, places, p.gather(1, places) * exponents.exp())
        else:  # the row's maximum cancels in Z; subtracting it prevents overflow
            exponents -= exponents.amax(dim=1, keepdim=True)
            p *= exponents.exp()
        return p.div_(p.sum(dim=1, keepdim=True))


@dataclass(frozen=True)
class TiltProblem:
    """The NLL of k points as a function of the tilt δ; its slope is Σ (v_δ - u).

    levels: float64 [k or 1, L], the values of u⃗, shifted so that each row's smallest is zero;
    masses: float64 [k, L], their probabilities; realized: Σ u, shifted too; span: largest level.
    """

    levels: Tensor
    masses: Tensor
    realized: float
    span: float

    @classmethod
    def of(cls, state: PatchedForecast, witness: Witness, vectors: Vectors) -> TiltProblem:
        """Return the problem. An event has two levels, any other utility one level per class."""
        rows = witness.rows
        u = witness.utility.realized(state)[rows]
        if witness.utility.kind in ("class", "top_k"):
            v = witness.utility.predicted(state)[rows].clamp(max=1)
            levels, masses = v.new_tensor([[0.0, 1.0]]), torch.stack([1 - v, v], dim=1)
            return cls(levels, masses, float(u.sum()), 1.0)
        masses, levels = state.probabilities[rows], vectors.table
        if vectors.by_rank:
            masses = masses.gather(1, state.order[rows].to(torch.int64))
            levels = torch.nn.functional.pad(levels, (0, masses.shape[1] - levels.shape[1]))
        lowest = levels.amin(dim=1, keepdim=True)
        levels = levels - lowest
        return cls(levels, masses, float((u - lowest[:, 0]).sum()), float(levels.max()))

    def excess(self, delta: float) -> tuple[float, float, bool]:
        """Return Σ (v_δ - u), which increases with δ, its derivative, and whether it is zero."""
        total, first, second = self._moments(delta)
        v = first / total
        excess = float(v.sum()) - self.realized
        curvature = float((second / total - v * v).sum())
        return excess, curvature, abs(excess) <= ROUNDING * self.span * len(v)

    def change(self, delta: float) -> float:
        """Return the change of the summed NLL by a tilt by δ: Σ (log Z - δ u)."""
        total, _, _ = self._moments(delta)
        return float((total / self.masses.sum(dim=1)).log().sum()) - delta * self.realized

    def _moments(self, delta: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return Σ_l m_l e^{δ l} l^r of every point for r = 0, 1, 2."""
        weights = torch.exp(delta * self.levels)
        powers = torch.stack([weights, weights * self.levels, weights * self.levels**2], dim=-1)
        if len(powers) == 1:
            total, first, second = (self.masses @ powers[0]).unbind(dim=1)
        else:
            total, first, second = torch.einsum("kl,klr->rk", self.masses, powers)
        return total, first, second
