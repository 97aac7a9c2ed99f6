"""The search for λ and μ: a fit on the kept points for each pair, scored on the held-out points.

Fits end at a gap of about 5e-7 nats, so the hold-out loss is exact to about 1e-4. Fits that overfit
stop early. All kept rows take part: with a few rows per class the diagonal of W, which has no
penalty, would overfit for every λ and μ, and the ranking would mislead.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from calibrators.dirichlet.linear_map import (
    LinearMapProblem,
    map_loss,
    penalty_weights,
)
from calibrators.losses import Loss
from calibrators.solvers.search import How, Run, best_run, search

TOLERANCE = 1e-6
"""Bound on the Newton decrement, which is about twice the gap to the minimal objective, in nats."""
WARM_STARTS = 8
"""Earlier solutions that a fit may start from."""
PATIENCE = 3
"""Iterations after which a fit may be stopped; the first iterations may overshoot."""
MAX_ITERATIONS = 300


class HeldOut(NamedTuple):
    """The points that are scored: inputs [m, C], labels [m], weights [m] (None: all equal)."""

    inputs: Tensor
    labels: Tensor
    counts: Tensor | None = None

    def loss(self, point: Tensor, loss: Loss) -> float:
        """Return their mean loss under the map `point`."""
        return map_loss(self.inputs, self.labels, point, loss=loss, counts=self.counts)


class TuningRuns:
    """Fits of one problem for varying λ, μ, scored on `held`.

    A fit starts from the earlier solution whose (log λ, log μ) is nearest. A fit stops early once
    its hold-out loss exceeds `limit`, the larger of temperature scaling's loss and the best
    finished run's loss. Such weak penalties overfit and converge slowest; the score at that moment
    is enough to rank them last.
    """

    def __init__(self, problem: LinearMapProblem, held: HeldOut) -> None:
        self.problem, self.held = problem, held
        self.scored: tuple[Tensor, float] | None = None
        self.temperature_loss = self._held_loss(problem.start)
        self.limit = math.inf
        self.earlier: deque[tuple[float, float, Tensor]] = deque(maxlen=WARM_STARTS)
        self.best_score, self.best_point = math.inf, problem.start

    def score(self, odir: float, l2: float) -> float:
        """Return the hold-out loss of the fit with λ = `odir`, μ = `l2`."""
        place = (math.log(odir + 1e-300), math.log(l2 + 1e-300))
        start = (*place, self.problem.start)
        begin = min(self.earlier, key=lambda run: math.dist(run[:2], place), default=start)[2]
        weights = penalty_weights(len(begin), odir, l2, begin.device)
        fit = self.problem.solve(
            weights,
            begin,
            tolerance=TOLERANCE,
            max_iterations=MAX_ITERATIONS,
            give_up=self._overfits,
        )
        score = self._held_loss(fit.point)
        if fit.converged:
            self.earlier.append((*place, fit.point))
            self.limit = max(self.temperature_loss, min(self.limit, score))
        if score < self.best_score:
            self.best_score, self.best_point = score, fit.point
        return score

    def _held_loss(self, point: Tensor) -> float:
        if self.scored is None or self.scored[0] is not point:
            self.scored = point, self.held.loss(point, self.problem.loss)
        return self.scored[1]

    def _overfits(self, iteration: int, point: Tensor) -> bool:
        return iteration > PATIENCE and self._held_loss(point) > self.limit


def tune_penalties(
    score: Callable[..., float],
    space: Mapping[str, Any],
    fixed: Mapping[str, float],
    count: int,
    seed: int,
    how: How = "even",
) -> tuple[dict[str, float], list[Run]]:
    """Return the best `odir` and `l2` in `space`, and the log; `fixed` holds the given ones.

    `score` is that of `TuningRuns`. The strongest penalties are fitted first and are not logged:
    no others can overfit less, the fit takes few iterations, it sets `limit`, and it is a good
    start for every other fit.
    """
    score = partial(score, **fixed)
    score(**{name: dimension.high for name, dimension in space.items()})
    log = search(score, space, count, seed, how)
    return dict(best_run(log)["parameters"]), log
