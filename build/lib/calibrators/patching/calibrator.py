"""Iterative patching for utility calibration (Algorithm 1 of the paper, app. A).

    audit    find the utility u in U_CWE ∪ U_topK (∪ sampled U_lin, U_rank) and the interval I with
             the largest |mean((u - v) · 1{v in I})|; ξ is the sign of the predicted excess
    patch    f ← Π_simplex(f - η ξ u⃗) for the points with v in I
    step     η by Armijo backtracking on the Brier score of the calibration set, which never rises

The fitted object is the list of patches; predicting replays it on new points. Step size, number of
steps and whether to sample utilities are tuned by scikit-optimize on a hold-out of the calibration
set, then everything is refitted on all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.patching.audit import Auditor, combined_error
from calibrators.patching.line_search import armijo_step, first_step, roomy
from calibrators.patching.state import KINDS, PatchedForecast, Witness
from calibrators.solvers.tuning import tune
from metrics.forecast import Forecast
from metrics.scores import brier_scores, log_losses
from metrics.utility_calibration import worst_interval
from metrics.validation import InputError

Objective = Literal["u_comb", "brier", "nll"]
STEP_SIZES = (1.0, 0.1, 0.03)
"""First step sizes tried by the line search; few enough that tuning runs share trajectories."""
ALIVE_BYTES = 2 << 30
"""Tuning keeps the forecasts of as many runs as fit in this, and of one at least."""
SCORED_EVERY = 5
"""Step limits that tuning tries are multiples of this (or `max_steps`, if that is smaller)."""


class Patch(NamedTuple):
    """Move the points with low <= v <= high along `witness` by `step` (signed), then project."""

    witness: Witness
    low: float
    high: float
    step: float
    error: float
    brier_change: float

    def apply(self, state: PatchedForecast) -> None:
        """Replay on any forecast."""
        v = state.predicted(self.witness)
        rows = torch.nonzero((v >= self.low) & (v <= self.high)).flatten()
        if len(rows):
            state.move(rows, self.witness, self.step)


def find_patch(
    state: PatchedForecast,
    auditor: Auditor,
    number: int,
    step_size: float,
    armijo: float = 0.5,
    theory: bool = False,
) -> Patch | None:
    """Audit `state` and return the patch for its worst witness; None if nothing can be gained.

    Args:
        number: of this audit; it seeds the sampled utilities.
        step_size: largest η of the line search.
        armijo: share of the linearly predicted decrease of the Brier score that η must achieve.
        theory: start the search at η = err / C (Proposition A.1), which Armijo's test passes.
    """
    witness = auditor.worst(state, number)
    payoff = witness.payoff.to(state.labels.device)
    v = state.predicted(witness)
    u = payoff[state.ranks if witness.by_rank else state.labels]
    worst = worst_interval(v, u)
    if worst.sign == 0:
        return None
    low, high = roomy(v, worst.low, worst.high)
    rows = torch.nonzero((v >= low) & (v <= high)).flatten()
    if theory:
        first = worst.error / len(payoff)
    else:
        spread = float((payoff - payoff.mean()).square().sum())
        first = first_step(worst.error * len(v) / len(rows), spread, step_size)
    step = armijo_step(lambda eta: state.try_step(rows, witness, worst.sign * eta), first, armijo)
    if step is None:
        return None
    return Patch(witness, low, high, worst.sign * step.size, worst.error, step.change / len(v))


def patches(
    state: PatchedForecast,
    auditor: Auditor,
    step_size: float,
    tolerance: float,
    armijo: float = 0.5,
    theory: bool = False,
    number: int = 0,
) -> Iterator[Patch]:
    """Yield patches of `state`, each already applied, until the worst UC is within `tolerance`.

    `number` patches have been applied before.
    """
    while True:
        patch = find_patch(state, auditor, number, step_size, armijo, theory)
        if patch is None or patch.error <= tolerance:
            return
        patch.apply(state)
        yield patch
        number += 1


class Trajectory:
    """One run of the algorithm, extended on demand: all step limits share it while tuning.

    Args:
        begin: makes the fitted and the held-out forecast, before any patch.
        run: yields the patches of a fitted forecast, from the given number on.
        score: of the held-out forecast.
    """

    def __init__(
        self,
        begin: Callable[[], tuple[PatchedForecast, PatchedForecast]],
        run: Callable[[PatchedForecast, int], Iterator[Patch]],
        score: Callable[[PatchedForecast], float],
    ) -> None:
        self.begin, self.run, self.score = begin, run, score
        self.patches: list[Patch] = []
        self.scores: dict[int, float] = {}
        self.ended = False
        self.alive: tuple[Iterator[Patch], PatchedForecast] | None = None

    def suspend(self) -> None:
        """Free the forecasts; the patches are kept and replayed, bit by bit, when it goes on."""
        self.alive = None

    def _resumed(self) -> tuple[Iterator[Patch], PatchedForecast]:
        if self.alive is None:
            fitted, held_out = self.begin()
            for patch in self.patches:
                patch.apply(fitted)
                patch.apply(held_out)
            self.alive = self.run(fitted, len(self.patches)), held_out
            self.scores.setdefault(len(self.patches), self.score(held_out))
        return self.alive

    def score_at(self, steps: int) -> float:
        """Return the hold-out score after `steps` patches (fewer if the run has ended)."""
        while (len(self.patches) < steps and not self.ended) or not self.scores:
            fitted, held_out = self._resumed()
            patch = next(fitted, None) if len(self.patches) < steps else None
            if patch is None:
                self.ended = len(self.patches) < steps
            else:
                patch.apply(held_out)
                self.patches.append(patch)
            done = len(self.patches)
            if self.ended or done % SCORED_EVERY == 0 or done == steps:
                self.scores[done] = self.score(held_out)
        return self.scores[min(steps, len(self.patches))]


class UtilityPatching(Calibrator):
    """Patch the softmax of the logits until its worst utilities are calibrated.

    Args:
        step_size: largest η of the line search; tuned if None.
        steps: number of patches; tuned if None.
        sampled: whether audits add sampled utilities; tuned if None.
        tuning_runs: scikit-optimize runs, if anything is tuned.
        sampled_count: utilities drawn from each of U_lin and U_rank per audit.
        tolerance: ε of Algorithm 1, stop when the worst UC is at most this.
        objective: what tuning minimises on the hold-out: u_comb, brier or nll.
        holdout: share of the calibration set held out while tuning.
        max_steps: largest number of patches that tuning tries.
        armijo: share of the predicted decrease that the line search asks for. The usual 1e-4 takes
            steps up to twice the best one; 0.5 stops at about the best one, which on CIFAR-100
            gave lower Brier scores and class-wise errors.
        line_search: "armijo", or "theory" for η = err / C.
        seed: of the hold-out, the tuning and the sampled utilities.

    Attributes:
        kinds_: int64 [T] index into ("class", "top_k", "linear", "rank"); indices_: int64 [T];
        vectors_: float64 [T', C] payoffs of the sampled utilities, in the order of their patches;
        lows_, highs_, steps_: float64 [T] interval of v and signed step;
        errors_: float64 [T] UC before each patch; brier_: float64 [T + 1] calibration Brier score;
        step_size_, step_limit_, sampled_: what was chosen; T is smaller where the run ended early.
    """

    def __init__(
        self,
        step_size: float | None = None,
        steps: int | None = None,
        sampled: bool | None = None,
        tuning_runs: int = 20,
        sampled_count: int = 264,
        tolerance: float = 1e-4,
        objective: Objective = "u_comb",
        holdout: float = 0.3,
        max_steps: int = 100,
        armijo: float = 0.5,
        line_search: Literal["armijo", "theory"] = "armijo",
        seed: int = 0,
    ) -> None:
        self.step_size = step_size
        self.steps = steps
        self.sampled = sampled
        self.tuning_runs = tuning_runs
        self.sampled_count = sampled_count
        self.tolerance = tolerance
        self.objective = objective
        self.holdout = holdout
        self.max_steps = max_steps
        self.armijo = armijo
        self.line_search = line_search
        self.seed = seed

    def _fit(self, logits: Tensor, labels: Tensor) -> None:
        self._check_options()
        probabilities = torch.softmax(logits.to(torch.float64), dim=1)
        chosen = self._tuned(probabilities, labels)
        self.step_size_, self.step_limit_ = chosen["step_size"], chosen["steps"]
        self.sampled_ = chosen["sampled"]
        state = PatchedForecast(probabilities, labels)
        run = self._run(chosen["step_size"], chosen["sampled"], state)
        self._store(list(islice(run, chosen["steps"])), probabilities, labels)

    def _check_options(self) -> None:
        if self.objective not in ("u_comb", "brier", "nll"):
            raise InputError(f"objective: {self.objective!r}, expected u_comb, brier or nll")
        if self.line_search not in ("armijo", "theory"):
            raise InputError(f"line_search: {self.line_search!r}, expected armijo or theory")
        if not 0 < self.holdout < 1:
            raise InputError(f"holdout: {self.holdout}, expected a share between 0 and 1")
        if not 0 < self.armijo < 1:
            raise InputError(f"armijo: {self.armijo}, expected a share between 0 and 1")
        if self.step_size is not None and not self.step_size > 0:
            raise InputError(f"step_size: {self.step_size}, expected a positive number")
        least = {"steps": 0, "max_steps": 1, "tuning_runs": 1, "sampled_count": 0, "tolerance": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and not value >= bound:
                raise InputError(f"{name}: {value}, expected {bound} or more")

    def _run(
        self, step_size: float, sampled: bool, state: PatchedForecast, number: int = 0
    ) -> Iterator[Patch]:
        device = state.probabilities.device
        classes = state.probabilities.shape[1]
        auditor = Auditor(classes, self.sampled_count if sampled else 0, self.seed, device)
        theory = self.line_search == "theory"
        return patches(state, auditor, step_size, self.tolerance, self.armijo, theory, number)

    def _tuned(self, probabilities: Tensor, labels: Tensor) -> dict[str, Any]:
        given = {"step_size": self.step_size, "steps": self.steps, "sampled": self.sampled}
        self.tuning_log_: list[dict[str, Any]] = []
        if all(value is not None for value in given.values()):
            return given
        from skopt.space import Categorical  # takes a second to import: only where tuned

        limits = range(SCORED_EVERY, self.max_steps + 1, SCORED_EVERY)
        space = {  # a plain list of two numbers would be read as a range
            "step_size": Categorical(STEP_SIZES),
            "steps": Categorical(list(limits) or [self.max_steps]),
            "sampled": Categorical([False, True]),
        }
        free = {name: space[name] for name in space if given[name] is None}
        objective = self._objective(probabilities, labels, given)
        best, self.tuning_log_ = tune(objective, free, self.tuning_runs, self.seed)
        return {**given, **best}

    def _objective(
        self, probabilities: Tensor, labels: Tensor, given: dict[str, Any]
    ) -> Callable[[dict[str, Any]], float]:
        """Return the hold-out score of a set of parameters; runs share their trajectories."""
        kept, held = _hold_out(len(labels), self.holdout, self.seed)
        kept, held = kept.to(labels.device), held.to(labels.device)
        auditor = Auditor(probabilities.shape[1], 0, self.seed, labels.device)
        trajectories: dict[tuple[float, bool], Trajectory] = {}

        # Of a trajectory: two float64 and one int32 a number, and the products of its audits.
        needed = 20 * probabilities.numel() + 8 * self.sampled_count * len(probabilities)

        def begin() -> tuple[PatchedForecast, PatchedForecast]:
            return (
                PatchedForecast(probabilities[kept], labels[kept]),
                PatchedForecast(probabilities[held], labels[held]),
            )

        def score(state: PatchedForecast) -> float:
            if self.objective == "u_comb":
                return combined_error(state, auditor)
            forecast = Forecast(state.probabilities)
            measure = brier_scores if self.objective == "brier" else log_losses
            return float(measure(forecast, forecast.outcomes(state.labels))[0])

        def objective(parameters: dict[str, Any]) -> float:
            chosen = {**given, **parameters}
            key = (float(chosen["step_size"]), bool(chosen["sampled"]))
            # The last one used comes last; those used longest ago are suspended first.
            if key in trajectories:
                trajectories[key] = trajectories.pop(key)
            else:
                run = partial(self._run, *key)
                trajectories[key] = Trajectory(begin, run, score)
            for idle in list(trajectories.values())[: -max(1, ALIVE_BYTES // needed)]:
                idle.suspend()
            return trajectories[key].score_at(int(chosen["steps"]))

        return objective

    def _store(self, fitted: list[Patch], probabilities: Tensor, labels: Tensor) -> None:
        classes = probabilities.shape[1]
        sampled = [p.witness for p in fitted if p.witness.kind in ("linear", "rank")]
        payoffs = [witness.payoff for witness in sampled]
        self.kinds_ = np.array([KINDS.index(p.witness.kind) for p in fitted], dtype=np.int64)
        self.indices_ = np.array([p.witness.index for p in fitted], dtype=np.int64)
        self.vectors_ = torch.stack(payoffs).numpy() if payoffs else np.empty((0, classes))
        self.lows_ = np.array([p.low for p in fitted], dtype=np.float64)
        self.highs_ = np.array([p.high for p in fitted], dtype=np.float64)
        self.steps_ = np.array([p.step for p in fitted], dtype=np.float64)
        self.errors_ = np.array([p.error for p in fitted], dtype=np.float64)
        forecast = Forecast(probabilities)
        start = float(brier_scores(forecast, forecast.outcomes(labels))[0])
        changes = np.array([0.0, *(p.brier_change for p in fitted)])
        self.brier_ = start + np.cumsum(changes)

    def patches(self) -> list[Patch]:
        """Return the fitted patches in the order of their application."""
        classes, vectors = int(self.n_features_in_), iter(self.vectors_)
        changes = np.diff(self.brier_)
        found = []
        for t, kind_number in enumerate(self.kinds_):
            kind, index = KINDS[int(kind_number)], int(self.indices_[t])
            if kind == "class":
                witness = Witness.of_class(index, classes)
            elif kind == "top_k":
                witness = Witness.of_top_k(index, classes)
            else:
                witness = Witness(kind, index, torch.from_numpy(next(vectors).copy()))
            numbers = (self.lows_[t], self.highs_[t], self.steps_[t], self.errors_[t], changes[t])
            found.append(Patch(witness, *(float(number) for number in numbers)))
        return found

    def _predict_proba(self, logits: Tensor) -> Tensor:
        state = PatchedForecast(torch.softmax(logits.to(torch.float64), dim=1))
        for patch in self.patches():
            patch.apply(state)
        return state.probabilities


def _hold_out(n: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return (kept, held-out) row numbers, at least one each where n allows it."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    held = min(max(1, round(share * n)), n - 1)
    if held < 1:
        raise InputError("labels: tuning needs at least two points; give step_size, steps, sampled")
    return order[held:], order[:held]
