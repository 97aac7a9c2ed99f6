"""The search for λ and μ: a fit on the kept points for each pair, scored on the held-out points.

Fits end at a gap of about 5e-7 nats, so the hold-out loss is exact to about 1e-4. Fits that overfit
stop early. Every fit uses all kept rows. With only a few rows per class the diagonal of W, which
has no penalty, would overfit for every λ and μ, and the ranking would mislead.
"""

from __future__ import annotations

import math
from collections import deque

from torch import Tensor

from calibrators.dirichlet.linear_map import LinearMapProblem, map_loss, odir_weights
from calibrators.solvers.lbfgs import Minimum

TOLERANCE = 1e-6
"""Bound on the Newton decrement, which is about twice the gap to the minimal objective, in nats."""
TINY = 1e-300
"""Added to λ and μ before their logarithm is taken, because a user may set either to zero."""
WARM_STARTS = 8
"""Number of earlier solutions that a fit may start from."""
PATIENCE = 3
"""Iterations after which a fit may be stopped; the first iterations may overshoot."""
MAX_ITERATIONS = 300


class TuningFits:
    """Fits of the kept rows for various λ and μ, scored on the held-out rows.

    A fit starts from the earlier solution whose (log λ, log μ) is nearest. It stops early once its
    hold-out loss exceeds `limit`, the larger of temperature scaling's loss and the best finished
    fit's loss. Such weak penalties overfit and converge slowest; the score at that moment is enough
    to rank them last. So the caller fits the strongest penalties first. That fit overfits least,
    takes few iterations and is a good start for every other fit.

    Args:
        problem: the kept rows.
        inputs, labels, counts: [m, C], [m] and [m] or None, the held-out rows and their weights.
    """

    def __init__(
        self, problem: LinearMapProblem, inputs: Tensor, labels: Tensor, counts: Tensor | None
    ) -> None:
        self.problem, self.counts = problem, counts
        self.held = inputs, labels
        self.temperature_loss = self.held_out_loss(problem.start)
        self.limit = math.inf
        self.earlier: deque[tuple[tuple[float, float], Tensor]] = deque(maxlen=WARM_STARTS)

    def held_out_loss(self, point: Tensor) -> float:
        """Return the mean loss of the held-out rows under the map `point`."""
        return map_loss(*self.held, point, loss=self.problem.loss, counts=self.counts)

    def fit(self, odir: float, l2: float) -> Minimum:
        """Return the fit with λ = `odir`, μ = `l2`."""
        place = math.log(odir + TINY), math.log(l2 + TINY)
        start = place, self.problem.start
        begin = min(self.earlier, key=lambda fit: math.dist(fit[0], place), default=start)[1]
        fit = self.problem.solve(
            odir_weights(len(begin), odir, l2, begin.device),
            begin,
            tolerance=TOLERANCE,
            max_iterations=MAX_ITERATIONS,
            give_up=lambda iteration, point: (
                iteration > PATIENCE and self.held_out_loss(point) > self.limit
            ),
        )
        if fit.converged:
            self.earlier.append((place, fit.point))
        return fit

    def score(self, odir: float, l2: float) -> float:
        """Return the hold-out loss of the fit with λ = `odir`, μ = `l2`."""
        fit = self.fit(odir, l2)
        score = self.held_out_loss(fit.point)
        if fit.converged:
            self.limit = max(self.temperature_loss, min(self.limit, score))
        return score
