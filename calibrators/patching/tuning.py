"""Tuning of step size, number of steps and sampling on a hold-out of the calibration points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.audit import Auditor, find_worst
from calibrators.patching.state import PatchedForecast
from metrics.forecast import Forecast
from metrics.scores import brier_scores, log_losses
from metrics.validation import InputError

Objective = Literal["u_comb", "brier", "nll"]
STEP_SIZES = (1.0, 0.1, 0.03)
"""First step sizes tried by the line search; few enough that tuning runs share trajectories."""
SCORED_EVERY = 5
"""Step limits that tuning tries are multiples of this (or `max_steps`, if that is smaller)."""
ALIVE_BYTES = 1 << 30
"""Tuning keeps the rankings of as many runs as fit in this, and of one at least."""


def score_of(state: PatchedForecast, objective: Objective, auditor: Auditor) -> float:
    """Return what tuning minimises: the worst UC that is audited, the Brier score or the NLL.

    u_comb is named for U_CWE ∪ U_topK, which the standard auditor without samples looks at.
    """
    if objective == "u_comb":
        return find_worst(auditor(state, 0))[2]
    forecast = Forecast(state.probabilities)
    measure = brier_scores if objective == "brier" else log_losses
    return float(measure(forecast, forecast.outcomes(state.labels))[0])


class Trajectory:
    """One run of the algorithm, extended on demand: all step limits share it while tuning.

    Args:
        begin: makes the fitted and the held-out forecast of their probabilities; of None those
            before any patch.
        run: Algorithm 1 on a fitted forecast, from the given number of patches on.
        score: of the held-out forecast.
    """

    def __init__(
        self,
        begin: Callable[[Sequence[Tensor] | None], tuple[PatchedForecast, PatchedForecast]],
        run: Callable[[PatchedForecast, int], Algorithm1],
        score: Callable[[PatchedForecast], float],
    ) -> None:
        self.begin, self.run, self.score = begin, run, score
        self.done = 0
        self.scores: dict[int, float] = {}
        self.ended = False
        self.alive: tuple[Algorithm1, PatchedForecast] | None = None
        self.suspended: Sequence[Tensor] | None = None

    def suspend(self) -> None:
        """Keep the probabilities alone; they are ranked again when it goes on."""
        if self.alive is not None:
            algorithm, held_out = self.alive
            self.suspended = algorithm.state.probabilities, held_out.probabilities
            self.alive = None

    def _resumed(self) -> tuple[Algorithm1, PatchedForecast]:
        if self.alive is None:
            fitted, held_out = self.begin(self.suspended)
            self.alive, self.suspended = (self.run(fitted, self.done), held_out), None
            self.scores.setdefault(self.done, self.score(held_out))
        return self.alive

    def score_at(self, steps: int) -> float:
        """Return the hold-out score after `steps` patches (fewer if the run has ended)."""
        while (self.done < steps and not self.ended) or not self.scores:
            algorithm, held_out = self._resumed()
            patch = algorithm.round() if self.done < steps else None
            if patch is None:
                self.ended = self.done < steps
            else:
                patch.apply(held_out, algorithm.update)
                self.done += 1
            if self.ended or self.done % SCORED_EVERY == 0 or self.done == steps:
                self.scores[self.done] = self.score(held_out)
        return self.scores[min(steps, self.done)]


class Trajectories:
    """The hold-out score of any step size, number of steps and sampling.

    Args:
        probabilities: float64 [n, C], with `labels` int64 [n], of all calibration points.
        run: Algorithm 1 for a forecast with (step size, sampled), from a number of patches on.
        score: of a held-out forecast, the smaller the better.
        holdout: share of the points held out.
        row_bytes: memory that a run needs for each point.
    """

    def __init__(
        self,
        probabilities: Tensor,
        labels: Tensor,
        run: Callable[[float, bool, PatchedForecast, int], Algorithm1],
        score: Callable[[PatchedForecast], float],
        holdout: float,
        seed: int,
        row_bytes: int,
    ) -> None:
        self.probabilities, self.labels = probabilities, labels
        self.run, self.score_of = run, score
        kept, held = _hold_out(len(labels), holdout, seed)
        self.parts = kept.to(labels.device), held.to(labels.device)
        self.most_alive = max(1, ALIVE_BYTES // (row_bytes * len(labels)))
        self.trajectories: dict[tuple[float, bool], Trajectory] = {}

    def score(self, chosen: dict[str, Any]) -> float:
        """Return the score of `step_size`, `steps` and `sampled`; runs share their trajectories."""
        key = (float(chosen["step_size"]), bool(chosen["sampled"]))
        # The last one used comes last; those used longest ago are suspended first.
        trajectory = self.trajectories.pop(key, None) or Trajectory(
            self._begin,
            lambda state, number: self.run(*key, state, number),
            self.score_of,
        )
        self.trajectories[key] = trajectory
        for idle in list(self.trajectories.values())[: -self.most_alive]:
            idle.suspend()
        return trajectory.score_at(int(chosen["steps"]))

    def _begin(self, given: Sequence[Tensor] | None) -> tuple[PatchedForecast, PatchedForecast]:
        start = given or [self.probabilities[k] for k in self.parts]
        pairs = zip(start, self.parts, strict=True)
        kept, held = (PatchedForecast(p, self.labels[k]) for p, k in pairs)
        return kept, held


def _hold_out(n: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return (kept, held-out) row numbers, at least one each where n allows it."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    held = min(max(1, round(share * n)), n - 1)
    if held < 1:
        raise InputError("labels: tuning needs at least two points; give step_size, steps, sampled")
    return order[held:], order[:held]
