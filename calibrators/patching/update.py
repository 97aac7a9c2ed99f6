"""How a patch moves the points of a witness, and how far.

`ProjectedDescent` is the paper's update: f ← Π_simplex(f - η ξ u⃗) lowers the Brier score.

`ExponentialTilting` is another one: f_j ← f_j exp(ν δ u⃗_j) / Z lowers the NLL. For an event (a
class, or the K most probable classes) it shifts the logit of its probability v by ν δ. The classes
inside the event keep their proportions, and so do those outside it. δ minimises the NLL of the
witness's points, a convex problem in one dimension. docs/methods/logit_shift.md has the proofs.

Each has `loss`, whose mean every step lowers (but for the last trial of a failed search that goes
on, `LineSearch.on_failure`); `step`, the step η > 0 (line 8) and its change, or None if no step
lowers the loss; and `moved`, the new probabilities of rows after a step
along u⃗, of either sign. Threads call `moved` for blocks of rows, so the result of a row must depend
on that row alone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from utility_calibration.metrics.arrays import Array

from ..losses import Loss
from ..solvers.root import solve_increasing
from .audit import Witness
from .line_search import CAPPED, LineSearch, Step
from .projection import displacement, moved_rows
from .state import PatchedForecast
from .utilities import Vectors

LARGEST_SHIFT = 5.0
"""Bound of |δ| times the range of u⃗. If the event happens at all points or at none, the best δ is
infinite."""
NO_RESIDUAL = 1e-13  # mean residuals of at most this share of the range of u⃗ count as zero


@dataclass(frozen=True)
class ProjectedDescent:
    """The paper's update, which lowers the Brier score.

    `step_size` is the largest η that the line search tries. Without a search (None), the step is
    η = err / C (Proposition A.1).
    """

    step_size: float
    search: LineSearch | None = CAPPED
    loss: ClassVar[Loss] = "brier"
    moved = staticmethod(moved_rows)

    def step(self, state: PatchedForecast, witness: Witness, vectors: Vectors) -> Step | None:
        """Search for η, or take theory's η."""
        classes = state.probabilities.shape[1]
        weights = state.shares[witness.rows]

        def try_step(eta: float) -> tuple[float, float]:
            return displacement(state, witness.rows, vectors, -witness.sign * eta)

        if self.search is None:
            eta = witness.error / classes
            slope, square = try_step(eta)
            return Step(eta, 2 * slope + square) if 2 * slope + square < 0 else None
        spread = vectors.spread(classes, weights)
        error_on_rows = witness.error * state.points / float(weights.sum())
        first = self.search.first(error_on_rows, spread, self.step_size)
        return self.search.step(try_step, first)


@dataclass(frozen=True)
class ExponentialTilting:
    """An update that lowers the NLL. Probabilities stay positive, so there is no projection.

    `shrinkage` is ν in (0, 1], the share of δ that a patch applies.
    """

    shrinkage: float
    loss: ClassVar[Loss] = "nll"

    def step(self, state: PatchedForecast, witness: Witness, vectors: Vectors) -> Step | None:
        """Return ν |δ|. δ has the sign of -ξ: it raises a predicted utility that was too low."""
        problem = TiltProblem.of(state, witness, vectors)
        if not problem.span > 0:
            return None
        bound = LARGEST_SHIFT / problem.span
        delta, _ = solve_increasing(problem.excess, 0.0, -bound, bound)
        size = self.shrinkage * abs(delta)
        return Step(size, problem.change(-witness.sign * size))

    def moved(self, state: PatchedForecast, rows: Array, vectors: Vectors, step: float) -> Array:
        """Return p_j exp(step u⃗_j) / Z of `rows`."""
        p = state.probabilities[rows]
        exponents = step * vectors.table
        if vectors.by_rank:
            places = state.order[rows, : exponents.shape[1]]
            moved = np.take_along_axis(p, places, axis=1) * np.exp(exponents)
            np.put_along_axis(p, places, moved, axis=1)
        else:  # the row's maximum cancels in Z; subtracting it prevents overflow
            exponents -= exponents.max(axis=1, keepdims=True)
            p *= np.exp(exponents)
        p /= p.sum(axis=1, keepdims=True)
        return p


@dataclass(frozen=True)
class TiltProblem:
    """The NLL of k points as a function of the tilt δ; its slope is Σ w (v_δ - u).

    levels: float64 [k or 1, L], the values of u⃗, shifted so that each row's smallest is zero;
    masses: float64 [k, L], their probabilities; weights: float64 [k], the w; realized: Σ w u,
    shifted too; span: largest level.
    """

    levels: Array
    masses: Array
    weights: Array
    realized: float
    span: float

    @classmethod
    def of(cls, state: PatchedForecast, witness: Witness, vectors: Vectors) -> Self:
        """Return the problem. An event has two levels, any other utility one level per class."""
        rows = witness.rows
        v, u, weights = witness.v[rows], witness.u[rows], state.shares[rows]
        if witness.utility.kind in ("class", "top_k"):
            v = v.clip(max=1)
            levels, masses = np.array([[0.0, 1.0]]), np.stack([1 - v, v], axis=1)
            return cls(levels, masses, weights, float((weights * u).sum()), 1.0)
        masses, levels = state.probabilities[rows], vectors.table
        if vectors.by_rank:
            masses = np.take_along_axis(masses, state.order[rows], axis=1)
            levels = np.pad(levels, ((0, 0), (0, masses.shape[1] - levels.shape[1])))
        lowest = levels.min(axis=1, keepdims=True)
        levels = levels - lowest
        realized = float((weights * (u - lowest[:, 0])).sum())
        return cls(levels, masses, weights, realized, float(levels.max()))

    def excess(self, delta: float) -> tuple[float, float, bool]:
        """Return Σ w (v_δ - u), which increases with δ, its derivative, and whether it is zero."""
        total, first, second = self._moments(delta)
        v = first / total
        excess = float((self.weights * v).sum()) - self.realized
        curvature = float((self.weights * (second / total - v * v)).sum())
        return excess, curvature, abs(excess) <= NO_RESIDUAL * self.span * float(self.weights.sum())

    def change(self, delta: float) -> float:
        """Return the change of the summed NLL by a tilt by δ: Σ w (log Z - δ u)."""
        growth = np.log(self._moments(delta)[0] / self.masses.sum(axis=1))
        return float((self.weights * growth).sum()) - delta * self.realized

    def _moments(self, delta: float) -> Array:
        """Return Σ_l m_l e^{δ l} l^r of every point for r = 0, 1, 2: [3, k]."""
        weighted = np.exp(delta * self.levels)[:, :, None] * self._powers
        if len(weighted) == 1:
            return (self.masses @ weighted[0]).T
        return np.einsum("kl,klr->rk", self.masses, weighted)

    @cached_property
    def _powers(self) -> Array:
        return np.stack([np.ones_like(self.levels), self.levels, self.levels**2], axis=-1)


Update = ProjectedDescent | ExponentialTilting
