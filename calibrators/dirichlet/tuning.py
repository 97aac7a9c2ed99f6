"""The search for λ and μ: quick fits, then the best few again to the end.

A tuning run need only rank its λ, μ among the others, so it ends early, and is given up as soon as
it overfits. Its score is off by more than the best runs differ (the hold-out loss is flat around
its minimum), so the `REFITTED` best are fitted again to the end, and these scores decide. Of the
points tried, the one chosen is within 1e-4 nats of the best hold-out loss. Two searches may differ
by more, on CIFAR-100 by up to 2e-3 either way.

All rows take part. With a few of them per class the diagonal of W, which no penalty holds,
overfits whatever λ and μ are, and the ranking misleads.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from calibrators.dirichlet.linear_map import (
    Evaluated,
    LinearMapProblem,
    map_loss,
    penalty_weights,
)
from calibrators.losses import Loss
from calibrators.solvers.tuning import best_run, best_runs, run_and_log, tune

QUICK_TOLERANCE, TOLERANCE = 1e-5, 1e-6
"""On the Newton decrement, about twice the gap to the minimal objective, in nats."""
REFITTED = 4
WARM_STARTS = 8
MAX_ITERATIONS = 300


class HeldOut(NamedTuple):
    """Inputs [m, C], labels [m], and the weights [m] of their mean loss, None: all equal."""

    inputs: Tensor
    labels: Tensor
    counts: Tensor | None = None

    def loss(self, point: Tensor, loss: Loss) -> float:
        """Return their mean loss under the map `point`."""
        return map_loss(self.inputs, self.labels, point, loss=loss, counts=self.counts)


class TuningRuns:
    """Fits of one problem for varying λ, μ, scored on `held`.

    A fit starts from the earlier solution whose (log λ, log μ) is nearest, and from the loss and
    gradient that are known there. A quick one is looked at after every iteration, and given up
    where its hold-out loss is above `limit`, temperature scaling's or, if larger, that of the best
    run which ended: penalties that weak overfit, their fits take the most iterations, and the score
    reached so far says enough.
    """

    def __init__(self, problem: LinearMapProblem, held: HeldOut) -> None:
        self.problem, self.held = problem, held
        self.scored: tuple[Tensor, float] | None = None
        self.temperature_loss = self._held_loss(problem.start)
        self.start = problem.at(problem.start)
        self.limit = math.inf
        self.earlier: deque[tuple[float, float, Evaluated]] = deque(maxlen=WARM_STARTS)
        self.best_score, self.best_point = math.inf, problem.start

    def quick(self, odir: float, l2: float) -> float:
        """Return about the hold-out loss of the fit with λ = `odir`, μ = `l2`."""
        return self._score(odir, l2, quick=True)

    def careful(self, odir: float, l2: float) -> float:
        """Return the hold-out loss of the fit with λ = `odir`, μ = `l2`."""
        return self._score(odir, l2, quick=False)

    def _score(self, odir: float, l2: float, *, quick: bool) -> float:
        place = (math.log(odir + 1e-300), math.log(l2 + 1e-300))
        start = (*place, self.start)
        begin = min(self.earlier, key=lambda run: math.dist(run[:2], place), default=start)[2]
        weights = penalty_weights(len(begin.point), odir, l2, begin.point.device)
        found = self.problem.solve(
            weights,
            begin,
            tolerance=QUICK_TOLERANCE if quick else TOLERANCE,
            max_iterations=MAX_ITERATIONS,
            give_up=self._overfits if quick else None,
        )
        score = self._held_loss(found.point)
        if found.converged:
            self.earlier.append((*place, self.problem.evaluated(found, weights)))
            self.limit = max(self.temperature_loss, min(self.limit, score))
        if score < self.best_score:
            self.best_score, self.best_point = score, found.point
        return score

    def _held_loss(self, point: Tensor) -> float:
        if self.scored is None or self.scored[0] is not point:
            self.scored = point, self.held.loss(point, self.problem.loss)
        return self.scored[1]

    def _overfits(self, iteration: int, point: Tensor) -> bool:
        return iteration > 0 and self._held_loss(point) > self.limit


def tune_penalties(
    runs: TuningRuns,
    space: Mapping[str, Any],
    fixed: Mapping[str, float],
    count: int,
    seed: int,
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the best of `odir` and `l2` in `space`, the others `fixed`, and the log.

    The log holds the `count` quick runs in order, then the refits of the best. Before all of them
    the strongest penalties are fitted, where no others can overfit less: a few iterations, which
    tell what overfits, and begin near every other solution.
    """
    runs.quick(**fixed, **{name: dimension.high for name, dimension in space.items()})
    _, log = tune(lambda tried: runs.quick(**fixed, **tried), space, count, seed)
    refits: list[dict[str, Any]] = []
    for run in best_runs(log, REFITTED):
        tried = run["parameters"]
        run_and_log(partial(runs.careful, **fixed, **tried), tried, refits)
    return dict(best_run(refits)["parameters"]), log + refits
