"""Patching against gain-matrix utilities (Algorithm 1 on the classes of app. "Aligned ...").

    audit    the utility calibration error of each sampled user; the worst one and its interval
    patch    p ← Π_simplex(p + η ξ u⃗) for the points with v in the interval, where u⃗ = R_{·j*(p)} is
             the column of the user's gain matrix for the class that the user predicts at this point
    step     η by Armijo backtracking on the Brier score, which never rises

A user's columns differ from point to point, so the rows of one transposed gain matrix [C, C] and a
class per point stand for the vectors u⃗ [n, C].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calibrators.patching.line_search import armijo_step, first_step
from metrics import GainMatrix
from metrics.forecast import Forecast, Outcomes
from metrics.kernels.compiled import compiled
from metrics.kernels.projection import project_row, project_rows_torch
from metrics.kernels.threads import over_row_blocks
from metrics.scores import brier_scores
from metrics.utility_calibration import worst_interval

DRAWS_TOGETHER = 5


class GainPatch(NamedTuple):
    """What one patch did: `points` rows with low <= v <= high moved by `step` (signed) along u⃗."""

    low: float
    high: float
    step: float
    error: float
    """UC of the user before the patch."""
    brier_change: float
    points: int


class Directions(NamedTuple):
    """u⃗ of some rows: `table[of_row]` [k, C]."""

    table: Tensor
    of_row: Tensor

    def spread(self) -> float:
        """Mean over rows of ‖u⃗ - mean u⃗‖²: the simplex has no room along the mean."""
        centred = self.table - self.table.mean(dim=1, keepdim=True)
        return float(centred.square().sum(dim=1)[self.of_row].mean())


class GainPatching:
    """A forecast that is patched against one user after another.

    Args:
        probabilities: float64 [n, C]; copied.
        labels: int64 [n].
        step_size: largest η of the line search.
        armijo: share of the linearly predicted decrease of the Brier score that η must achieve.
    """

    def __init__(
        self, probabilities: Tensor, labels: Tensor, step_size: float = 1.0, armijo: float = 0.5
    ) -> None:
        self.forecast = Forecast(probabilities.to(torch.float64).contiguous().clone())
        self.on_cpu = probabilities.device.type == "cpu"
        self.labels = labels
        self.step_size = step_size
        self.armijo = armijo

    @property
    def probabilities(self) -> Tensor:
        """As patched so far: float64 [n, C]."""
        return self.forecast.probabilities

    def brier_score(self) -> float:
        """Return the Brier score as it is now."""
        return float(brier_scores(self.forecast, Outcomes(self.labels[None]))[0])

    def errors(self, users: GainMatrix) -> Tensor:
        """Audit: UC of each user, float64 [m]."""
        return users.errors(self.forecast, Outcomes(self.labels[None]))[0]

    def noise_errors(self, users: GainMatrix, draws: int, seed: int) -> Tensor:
        """Return UC of each user if the forecast were calibrated: labels drawn from it, [draws, m].

        A few draws at a time share what the users choose; their gains are held for each draw.
        """
        generator = torch.Generator().manual_seed(seed)
        shape = (draws, len(self.labels))
        uniforms = torch.rand(shape, generator=generator, dtype=torch.float64)
        # A forecast of its own, as drawing labels leaves two more n × C matrices in it.
        labels = Forecast(self.probabilities).redraw(uniforms).labels
        together = [Outcomes(some) for some in labels.split(DRAWS_TOGETHER)]
        return torch.cat([users.errors(self.forecast, outcomes) for outcomes in together])

    def patch(self, user: GainMatrix) -> GainPatch | None:
        """Patch the worst interval of a class of one user; None if no step lowers the Brier score.

        Raises:
            ValueError: the class holds several users.
        """
        if user.utilities != 1:
            raise ValueError(f"patch: one user at a time, got {user.utilities}")
        outcomes = Outcomes(self.labels[None])
        predicted, realized, chosen = user.choose(self.forecast, outcomes)
        alike = user.alike(self.forecast)
        v = predicted[:, 0] if alike is None else predicted[alike, 0]
        worst = worst_interval(v, realized[0, :, 0])
        if worst.sign == 0:
            return None
        rows = torch.nonzero((v >= worst.low) & (v <= worst.high)).flatten()
        table = user.matrix(0).to(v.device).T.contiguous()
        directions = Directions(table, chosen[rows, 0])
        first = first_step(worst.error * len(v) / len(rows), directions.spread(), self.step_size)
        step = armijo_step(
            lambda eta: self._try_step(rows, directions, worst.sign * eta), first, self.armijo
        )
        if step is None:
            return None
        signed = worst.sign * step.size
        self._move(rows, directions, signed)
        change = step.change / len(v)
        return GainPatch(worst.low, worst.high, signed, worst.error, change, len(rows))

    def _try_step(self, rows: Tensor, directions: Directions, step: float) -> tuple[float, float]:
        """Return Σ<p - y, d> and Σ‖d‖² over `rows` for d, the displacement by this step."""
        if not self.on_cpu:
            before, labels = self.probabilities[rows], self.labels[rows]
            d = self._displaced(rows, directions, step) - before
            slope = (d * before).sum() - d.gather(1, labels[:, None]).sum()
            return float(slope), float(d.square().sum())
        out = np.empty((len(rows), 2))
        self._compiled(rows, directions, step, out)
        slope_sum, square_sum = out.sum(axis=0)
        return float(slope_sum), float(square_sum)

    def _move(self, rows: Tensor, directions: Directions, step: float) -> None:
        if not self.on_cpu:
            self.probabilities[rows] = self._displaced(rows, directions, step)
        else:
            self._compiled(rows, directions, step, np.empty((0, 2)))
        self.forecast = Forecast(self.probabilities)  # forgets ranks and ties of the one before

    def _compiled(self, rows: Tensor, directions: Directions, step: float, out: Any) -> None:
        p, labels = self.probabilities.numpy(), self.labels.numpy()
        chosen, table, of_row = rows.numpy(), directions.table.numpy(), directions.of_row.numpy()

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            _displace(p, labels, chosen[part], table, of_row[part], step, out[part])

        over_row_blocks(work, len(chosen), len(chosen) * p.shape[1])

    def _displaced(self, rows: Tensor, directions: Directions, step: float) -> Tensor:
        moved = self.probabilities[rows] + step * directions.table[directions.of_row]
        return project_rows_torch(moved)


@compiled
def _displace(
    p: Any, labels: Any, rows: Any, table: Any, of_row: Any, step: float, out: Any
) -> None:
    """Write slope and square of the displacements to `out` [k, 2]; move the rows if it is empty."""
    x = np.empty(p.shape[1])
    for k in range(rows.size):
        i = rows[k]
        push = table[of_row[k]]
        for j in range(x.size):
            x[j] = p[i, j] + step * push[j]
        project_row(x)
        if out.shape[0] == 0:
            p[i] = x
            continue
        slope = square = 0.0
        for j in range(x.size):
            moved = x[j] - p[i, j]
            slope += moved * p[i, j]
            square += moved * moved
        out[k, 0] = slope - (x[labels[i]] - p[i, labels[i]])
        out[k, 1] = square
