"""The appendix study of one family: audit sampled users, patch the worst, again and again.

Every iteration draws fresh users from its own seed.
"""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

import numpy as np
import pandas as pd

from utility_calibration.calibrators.patching.algorithm import Algorithm1
from utility_calibration.calibrators.patching.audit import Family, class_family
from utility_calibration.calibrators.patching.line_search import line_search
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.update import ProjectedDescent
from utility_calibration.metrics import GainMatrix
from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.forecast import Forecast, Outcomes
from utility_calibration.metrics.kernels.draws import Draws
from utility_calibration.metrics.kernels.softmax import softmax

from ..harness.artifacts import save_npz
from ..harness.cache import Record, Save
from ..harness.settings import Dynamics, Settings
from ..harness.task import Progress
from .points import find_logits, indices_of

ARGUMENTS = {"aligned": {"high"}, "misaligned": {"subsets", "partition_seed", "gain"}}
"""The options of each family of users."""
PATCH = ("user", "low", "high", "step", "points")
DRAWS_TOGETHER = 5


def check_options(options: Dynamics, classes: int) -> None:
    """Raise `InputError` if users of so many classes, or patches, cannot be made of the options."""
    line_search(options.line_search)
    if any(number < 0 for number in options.snapshots):
        message = f"{options.snapshots}, expected whole numbers"
        raise InputError(message, field="dynamics.snapshots", fixes="count iterations from 0")
    for family in options.families:
        arguments = getattr(options, family)
        if not isinstance(arguments, Mapping) or not {*arguments} <= ARGUMENTS[family]:
            fix = f"give {' and '.join(sorted(ARGUMENTS[family]))}"
            raise InputError(f"{arguments}", field=f"dynamics.{family}", fixes=fix)
        sample_users(family, classes, 0, options)


def sample_users(family: str, classes: int, iteration: int, options: Dynamics) -> GainMatrix:
    """The users of one iteration; the same for the same seed."""
    count, seed = options.utilities, options.seed * 1_000_003 + iteration
    if family == "aligned":
        return GainMatrix.sample_aligned(count, classes, seed, **options.aligned)
    if family == "misaligned":
        return GainMatrix.sample_misaligned(count, classes, seed, **options.misaligned)
    raise InputError(family, field="dynamics.families", fixes="known: aligned, misaligned")


def studied(settings: Settings, family: str, split: int, progress: Progress) -> tuple[Save, Record]:
    """Run the study; return what writes its arrays, and its record.

    The arrays are the columns of two tables: `history`, a row per iteration, of which the last has
    no patch, and `snapshots`, UC of all users at the selected iterations. The record has the noise
    floor of the largest UC after the last iteration, on calibration and on held-out points.
    """
    cached, options = find_logits(settings), settings.dynamics
    states = []
    for points in indices_of(settings, cached, split):
        logits = cached.arrays()["logits"][points].astype(np.float64)
        states.append(PatchedForecast(softmax(logits), cached.arrays()["labels"][points]))
    calibration, held_out = states
    tables = run_study(calibration, held_out, family, options)
    arrays = {}
    for name, table in zip(("history", "snapshots"), tables, strict=True):
        for column in table:
            arrays[f"{name}.{column}"] = table[column].to_numpy()
    classes = int(cached.details["classes"])
    users = sample_users(family, classes, options.iterations, options)
    return partial(save_npz, arrays=arrays), {
        "benchmark": settings.benchmark.name,
        "family": family,
        "split": split,
        "n": len(calibration.labels),
        "n_held_out": len(held_out.labels),
        "classes": classes,
        "different_users": users.different,
        "config": asdict(options),
        "logits_sha256": cached.sha256,
        "worst_noise_floor": worst_floor(calibration, users, options),
        "worst_noise_floor_held_out": worst_floor(held_out, users, options),
    }


def run_study(
    state: PatchedForecast,
    held_out: PatchedForecast,
    family: str,
    options: Dynamics,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Patch `state`, and replay each patch on points that no patch was fitted on.

    Return `history`, with each patch and the errors before it, and `snapshots`. A round has the
    same users for both; `held_out` in `history` is the largest error of any on the held-out points.
    """
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
        unseen = float(class_family(auditor.users, held_out).errors(0.0).max())
        row = {
            "iteration": iteration,
            "worst": float(errors.max()),
            "mean": float(errors.mean()),
            "held_out": unseen,
            "brier": brier,
        }
        values = int(errors.argmax()), np.nan, np.nan, 0.0, 0
        if patch is not None:
            values = patch.utility.index, patch.low, patch.high, patch.shift, patch.points
            patch.apply(held_out, update)
        history.append(row | dict(zip(PATCH, values, strict=True)))
        brier += patch.loss_change if patch else 0.0
    return pd.DataFrame(history), pd.concat(snapshots, ignore_index=True)


class UserAuditor:
    """An auditor of users who are sampled anew in every round; `users` and `errors` are kept."""

    users: GainMatrix

    def __init__(self, family: str, options: Dynamics) -> None:
        self.family, self.options = family, options
        self.errors = np.empty(0)

    def __call__(self, state: PatchedForecast, number: int) -> list[Family]:
        classes = state.probabilities.shape[1]
        self.users = sample_users(self.family, classes, number, self.options)
        audited = class_family(self.users, state)
        self.errors = audited.errors(0.0)
        return [audited]


def worst_floor(
    state: PatchedForecast, users: GainMatrix, options: Dynamics
) -> dict[str, float] | None:
    """The largest UC of users of a calibrated forecast: mean, 5 % and 95 % quantile of draws."""
    if not options.floor_draws:
        return None
    noise = noise_errors(state, users, options.floor_draws, options.seed)
    worst = noise.max(axis=1)
    q05, q95 = np.quantile(worst, [0.05, 0.95])
    return {"mean": float(worst.mean()), "q05": float(q05), "q95": float(q95)}


def noise_errors(state: PatchedForecast, users: GainMatrix, draws: int, seed: int) -> Array:
    """Return UC of each user for labels drawn from the forecast, [draws, m].

    A few draws at a time share the users' choices, because memory holds the gains of each draw.
    """
    uniforms = Draws(seed).uniforms(draws, len(state.labels))
    # Drawing labels stores two n × C matrices in a forecast, so another one draws them.
    labels = Forecast(state.probabilities).redraw(uniforms).labels
    forecast = Forecast(state.probabilities)
    together = [
        Outcomes(labels[start : start + DRAWS_TOGETHER])
        for start in range(0, draws, DRAWS_TOGETHER)
    ]
    return np.concatenate([users.errors(forecast, outcomes) for outcomes in together])
