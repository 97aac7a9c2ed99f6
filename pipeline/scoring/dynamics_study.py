"""The appendix study of one family: audit sampled users, patch the worst, again and again.

Every iteration draws fresh users from its own seed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.patching.algorithm import Algorithm1, Patch
from calibrators.patching.audit import Family, class_family
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent
from metrics import GainMatrix
from metrics.forecast import Forecast, Outcomes
from metrics.validation import InputError
from pipeline.harness.artifacts import save_npz
from pipeline.harness.cache import Record, Save
from pipeline.harness.parallel import Progress
from pipeline.harness.settings import Dynamics, Settings
from pipeline.scoring.cached_logits import find_logits
from pipeline.scoring.splits import indices_of

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
COLUMNS = (
    "iteration", "worst", "mean", *QUANTILES, "brier",
    "user", "low", "high", "step", "points",
)  # fmt: skip
DRAWS_TOGETHER = 5


@dataclass
class Study:
    """The results of a study so far."""

    brier: float
    history: list[dict[str, float]] = field(default_factory=list)
    """A row of COLUMNS per iteration; the last has no patch."""
    snapshots: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    """UC of all users at the selected iterations."""
    worst_floor: dict[str, float] | None = None
    """The noise floor of the largest UC: mean, 5 % and 95 % quantile."""

    def tables(self) -> dict[str, pd.DataFrame]:
        """`history`, and `snapshots` with the columns iteration, user and error."""
        parts = [
            pd.DataFrame({"iteration": number, "user": np.arange(len(errors)), "error": errors})
            for number, errors in self.snapshots.items()
        ]
        return {
            "history": pd.DataFrame(self.history, columns=list(COLUMNS)),
            "snapshots": pd.concat(parts, ignore_index=True),
        }


def sample_users(family: str, classes: int, iteration: int, options: Dynamics) -> GainMatrix:
    """The users of one iteration; the same for the same seed.

    Raises:
        InputError: a family that does not exist.
    """
    count, seed = options.utilities, options.seed * 1_000_003 + iteration
    if family == "aligned":
        return GainMatrix.sample_aligned(count, classes, seed, **options.aligned)
    if family == "misaligned":
        return GainMatrix.sample_misaligned(count, classes, seed, **options.misaligned)
    raise InputError(f"dynamics.families: {family}; known: aligned, misaligned")


def studied(
    settings: Settings, family: str, split: int, device: str, progress: Progress
) -> tuple[Save, Record]:
    """Run the study; return what writes its arrays, and its record."""
    cached = find_logits(settings)
    logits, labels = cached.arrays()["logits"], cached.arrays()["labels"]
    points, _ = indices_of(settings, cached, split)
    probabilities = torch.from_numpy(logits[points]).to(device, torch.float64).softmax(dim=1)
    options = settings.dynamics
    truth = torch.from_numpy(labels[points]).to(device)
    study = run_study(probabilities, truth, family, options, progress)
    arrays = {
        f"{name}.{column}": table[column].to_numpy()
        for name, table in study.tables().items()
        for column in table
    }
    return partial(save_npz, arrays=arrays), {
        "benchmark": settings.benchmark.name,
        "family": family,
        "split": split,
        "n": len(points),
        "classes": cached.details["classes"],
        "config": asdict(options),
        "logits_sha256": cached.sha256,
        "worst_noise_floor": study.worst_floor,
    }


def run_study(
    probabilities: Tensor,
    labels: Tensor,
    family: str,
    options: Dynamics,
    progress: Progress | None = None,
) -> Study:
    """Patch `probabilities` [n, C] as the options say.

    Raises:
        InputError: the options do not fit the number of classes.
    """
    update = ProjectedDescent(options.step_size, options.armijo)
    state = PatchedForecast(probabilities, labels)
    study = Study(update.loss(state))
    auditor = UserAuditor(family, options)
    last = options.iterations
    algorithm = Algorithm1(state, auditor, update, tolerance=0.0)
    for iteration in range(last + 1):
        algorithm.number = iteration  # even if a round finds no step: the next one has other users
        if iteration < last:
            patch = algorithm.round()
        else:
            patch = None
            auditor(state, iteration)
        errors = auditor.errors
        if iteration in (*options.snapshots, last):
            study.snapshots[iteration] = errors
        study.history.append(_row(iteration, errors, study.brier, patch))
        study.brier += patch.loss_change if patch else 0.0
        if progress:
            progress(iteration + 1, last + 1, f"worst {errors.max():.4f}")
    if options.floor_draws:
        users = sample_users(family, state.probabilities.shape[1], last, options)
        noise = noise_errors(state, users, options.floor_draws, options.seed)
        worst = noise.cpu().numpy().max(axis=1)
        q05, q95 = np.quantile(worst, [0.05, 0.95])
        study.worst_floor = {"mean": float(worst.mean()), "q05": float(q05), "q95": float(q95)}
    return study


class UserAuditor:
    """An auditor of users who are sampled anew in every round; their errors are kept."""

    def __init__(self, family: str, options: Dynamics) -> None:
        self.family, self.options = family, options
        self.errors = np.empty(0)

    def __call__(self, state: PatchedForecast, number: int) -> list[Family]:
        classes = state.probabilities.shape[1]
        users = class_family(sample_users(self.family, classes, number, self.options), state)
        self.errors = users.bounds.cpu().numpy()  # a class's bounds are its errors
        return [users]


def noise_errors(state: PatchedForecast, users: GainMatrix, draws: int, seed: int) -> Tensor:
    """Return UC of each user for labels drawn from the forecast, [draws, m].

    A few draws at a time share the users' choices, because memory holds the gains of each draw.
    """
    generator = torch.Generator().manual_seed(seed)
    uniforms = torch.rand((draws, len(state.labels)), generator=generator, dtype=torch.float64)
    # Drawing labels stores two n × C matrices in a forecast, so another one draws them.
    labels = Forecast(state.probabilities).redraw(uniforms).labels
    forecast = Forecast(state.probabilities)
    together = [Outcomes(few) for few in labels.split(DRAWS_TOGETHER)]
    return torch.cat([users.errors(forecast, outcomes) for outcomes in together])


def _row(
    iteration: int, errors: NDArray[np.float64], brier: float, patch: Patch | None
) -> dict[str, float]:
    """One line of the history: the errors before the patch, and the patch itself."""
    row = {
        "iteration": iteration,
        "worst": float(errors.max()),
        "mean": float(errors.mean()),
        **{name: float(np.quantile(errors, level)) for name, level in QUANTILES.items()},
        "brier": brier,
    }
    if patch is None:
        none = {"low": np.nan, "high": np.nan, "step": 0.0, "points": 0}
        return {**row, "user": int(errors.argmax()), **none}
    moved = {"low": patch.low, "high": patch.high, "step": patch.shift, "points": patch.points}
    return {**row, "user": patch.utility.index, **moved}
