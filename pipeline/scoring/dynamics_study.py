"""The appendix study of one family: audit sampled users, patch the worst, again and again.

Every iteration draws fresh users from its own seed.
"""

from dataclasses import asdict
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from utility_calibration.calibrators.patching.algorithm import Algorithm1
from utility_calibration.calibrators.patching.audit import Family, class_family
from utility_calibration.calibrators.patching.line_search import line_search
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.update import ProjectedDescent
from utility_calibration.metrics import GainMatrix
from utility_calibration.metrics.forecast import Forecast, Outcomes
from utility_calibration.metrics.validation import InputError

from ..harness.artifacts import save_npz
from ..harness.cache import Record, Save
from ..harness.parallel import Progress
from ..harness.settings import Dynamics, Settings
from .points import find_logits, indices_of

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
PATCH = ("user", "low", "high", "step", "points")
DRAWS_TOGETHER = 5


def sample_users(family: str, classes: int, iteration: int, options: Dynamics) -> GainMatrix:
    """The users of one iteration; the same for the same seed."""
    count, seed = options.utilities, options.seed * 1_000_003 + iteration
    if family == "aligned":
        return GainMatrix.sample_aligned(count, classes, seed, **options.aligned)
    if family == "misaligned":
        return GainMatrix.sample_misaligned(count, classes, seed, **options.misaligned)
    raise InputError(f"dynamics.families: {family}; known: aligned, misaligned")


def studied(
    settings: Settings, family: str, split: int, device: str, progress: Progress
) -> tuple[Save, Record]:
    """Run the study; return what writes its arrays, and its record.

    The arrays are the columns of two tables: `history`, a row per iteration, of which the last has
    no patch, and `snapshots`, UC of all users at the selected iterations. The record has the noise
    floor of the largest UC after the last iteration: mean, 5 % and 95 % quantile.
    """
    cached, options = find_logits(settings), settings.dynamics
    logits, labels = cached.arrays()["logits"], cached.arrays()["labels"]
    points, _ = indices_of(settings, cached, split)
    probabilities = torch.from_numpy(logits[points]).to(device, torch.float64).softmax(dim=1)
    state = PatchedForecast(probabilities, torch.from_numpy(labels[points]).to(device))
    tables = run_study(state, family, options, progress)
    arrays = {
        f"{name}.{column}": table[column].to_numpy()
        for name, table in zip(("history", "snapshots"), tables, strict=True)
        for column in table
    }
    floor = None
    if options.floor_draws:
        users = sample_users(family, probabilities.shape[1], options.iterations, options)
        noise = noise_errors(state, users, options.floor_draws, options.seed)
        worst = noise.cpu().numpy().max(axis=1)
        q05, q95 = np.quantile(worst, [0.05, 0.95])
        floor = {"mean": float(worst.mean()), "q05": float(q05), "q95": float(q95)}
    return partial(save_npz, arrays=arrays), {
        "benchmark": settings.benchmark.name,
        "family": family,
        "split": split,
        "n": len(points),
        "classes": cached.details["classes"],
        "config": asdict(options),
        "logits_sha256": cached.sha256,
        "worst_noise_floor": floor,
    }


def run_study(
    state: PatchedForecast, family: str, options: Dynamics, progress: Progress
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Patch; return `history`, with each patch and the errors before it, and `snapshots`."""
    update = ProjectedDescent(options.step_size, line_search(options.line_search))
    brier, last = float(state.losses("brier").mean()), options.iterations
    history, snapshots = [], []
    auditor = UserAuditor(family, options)
    algorithm = Algorithm1(state, auditor, update, tolerance=0.0)
    for iteration in range(last + 1):
        algorithm.number = iteration  # even if a round finds no step: the next one has other users
        patch = algorithm.round() if iteration < last else None
        if iteration == last:
            auditor(state, iteration)
        errors = auditor.errors
        if iteration in (*options.snapshots, last):
            users = {"user": np.arange(len(errors)), "error": errors}
            snapshots.append(pd.DataFrame({"iteration": iteration, **users}))
        row = {"iteration": iteration, "worst": float(errors.max()), "mean": float(errors.mean())}
        row |= {name: float(np.quantile(errors, level)) for name, level in QUANTILES.items()}
        moved = int(errors.argmax()), np.nan, np.nan, 0.0, 0
        if patch is not None:
            moved = patch.utility.index, patch.low, patch.high, patch.shift, patch.points
        history.append({**row, "brier": brier, **dict(zip(PATCH, moved, strict=True))})
        brier += patch.loss_change if patch else 0.0
        progress(iteration + 1, last + 1, f"worst {errors.max():.4f}")
    return pd.DataFrame(history), pd.concat(snapshots, ignore_index=True)


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
