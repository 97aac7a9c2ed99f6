"""Tuning of step size, number of steps and sampling on a hold-out of the calibration points.

The settings asked for are spread evenly; those of one step size and sampling are one run of the
algorithm, which passes all smaller numbers of steps on the way. Every setting that was passed is
scored, and the best of all is taken. No model of the scores proposes where to look: a Gaussian
process would know most untried numbers of steps as equally good, and rounding would choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal

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
"""First step sizes tried by the line search; few enough that settings share runs."""
SCORED_EVERY = 5
"""Step limits that tuning tries are multiples of this (or `max_steps`, if that is smaller)."""


def score_of(state: PatchedForecast, objective: Objective, auditor: Auditor) -> float:
    """Return what tuning minimises: the worst UC that is audited, the Brier score or the NLL.

    u_comb is named for U_CWE ∪ U_topK, which the standard auditor without samples looks at.
    """
    if objective == "u_comb":
        return find_worst(auditor(state, 0))[2]
    forecast = Forecast(state.probabilities)
    measure = brier_scores if objective == "brier" else log_losses
    return float(measure(forecast, forecast.outcomes(state.labels))[0])


class HoldOut:
    """Scores of runs of the algorithm on points that they were not fitted on.

    Args:
        probabilities: float64 [n, C], with `labels` int64 [n], of all calibration points.
        share: of the points that is held out; `seed`: of the draw.
        score: of a held-out forecast, the smaller the better.
    """

    def __init__(
        self,
        probabilities: Tensor,
        labels: Tensor,
        share: float,
        seed: int,
        score: Callable[[PatchedForecast], float],
    ) -> None:
        self.probabilities, self.labels, self.score = probabilities, labels, score
        kept, held = _hold_out(len(labels), share, seed)
        self.parts = kept.to(labels.device), held.to(labels.device)

    def scores(
        self, run: Callable[[PatchedForecast], Algorithm1], limits: Sequence[int]
    ) -> Iterator[float]:
        """Yield the score after each number of patches in `limits` (increasing) of one run.

        A run that ends early is scored where it ended.
        """
        fitted, held = (PatchedForecast(self.probabilities[k], self.labels[k]) for k in self.parts)
        algorithm, done, found = run(fitted), 0, None
        for limit in limits:
            ended = algorithm.stopped != "limit"
            for patch in () if ended else islice(algorithm, limit - done):
                patch.apply(held, algorithm.update)
                done, found = done + 1, None
            found = self.score(held) if found is None else found
            yield found


def _hold_out(n: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return (kept, held-out) row numbers, at least one each where n allows it."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    held = min(max(1, round(share * n)), n - 1)
    if held < 1:
        raise InputError("labels: tuning needs at least two points; give step_size, steps, sampled")
    return order[held:], order[:held]
