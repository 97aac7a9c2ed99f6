"""The appendix study of one family: audit sampled users, patch the worst, again and again.

Every iteration draws fresh users from its own seed. What has been done is saved now and then, so a
killed run goes on where it stood; the saved forecast is exact, so both end alike.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.patching.gain_patching import GainPatch, GainPatching
from metrics import GainMatrix
from metrics.validation import InputError
from pipeline.harness.artifacts import CorruptFile, read_npz, write_npz
from pipeline.sources.result import Progress

FAMILIES = ("aligned", "misaligned")
SECONDS_BETWEEN_SAVES = 60.0
QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
COLUMNS = (
    "iteration", "worst", "mean", *QUANTILES, "brier",
    "user", "low", "high", "step", "points", "seconds",
)  # fmt: skip
Options = Mapping[str, Any]
"""conf/dynamics/*.yaml"""


@dataclass
class Study:
    """What is known after some iterations.

    history: a list per iteration in the order of COLUMNS; snapshots: iteration -> UC of all users.
    """

    brier: float
    history: list[list[float]] = field(default_factory=list)
    snapshots: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    floor: NDArray[np.float64] | None = None
    """UC of the last iteration's users under labels drawn from the last forecast: [draws, m]."""

    def history_table(self) -> pd.DataFrame:
        """One row per iteration; the last has no patch."""
        table = pd.DataFrame(self.history, columns=list(COLUMNS))
        return table.astype(dict.fromkeys(("iteration", "user", "points"), "int64"))

    def snapshot_table(self) -> pd.DataFrame:
        """Columns iteration, user, error: the distribution at the selected iterations."""
        parts = [
            pd.DataFrame({"iteration": number, "user": np.arange(len(errors)), "error": errors})
            for number, errors in self.snapshots.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def worst_floor(self) -> dict[str, float] | None:
        """The largest UC that sampling noise alone would show: mean, 5 % and 95 % quantile."""
        if self.floor is None:
            return None
        worst = self.floor.max(axis=1)
        q05, q95 = np.quantile(worst, [0.05, 0.95])
        return {"mean": float(worst.mean()), "q05": float(q05), "q95": float(q95)}


def check_options(options: Options) -> None:
    """Raise `InputError` for settings that make no study, in one line."""
    for name, least in (("iterations", 0), ("utilities", 1), ("floor_draws", 0)):
        if options[name] < least:
            raise InputError(f"dynamics.{name}={options[name]}: expected at least {least}")
    unknown = [family for family in options["families"] if family not in FAMILIES]
    if unknown or not options["families"]:
        raise InputError(f"dynamics.families: {unknown or 'none'}; known: {', '.join(FAMILIES)}")
    for name in ("step_size", "armijo"):
        if not options[name] > 0:
            raise InputError(f"dynamics.{name}={options[name]}: expected a positive number")


def sample_users(family: str, classes: int, iteration: int, options: Options) -> GainMatrix:
    """The users of one iteration; the same for the same seed."""
    count, seed = options["utilities"], options["seed"] * 1_000_003 + iteration
    if family == "aligned":
        return GainMatrix.sample_aligned(count, classes, seed, **options["aligned"])
    return GainMatrix.sample_misaligned(count, classes, seed, **options["misaligned"])


def run_study(
    probabilities: Tensor,
    labels: Tensor,
    family: str,
    options: Options,
    saved: Path,
    key: str,
    progress: Progress | None = None,
) -> Study:
    """Patch `probabilities` [n, C] as the options say.

    Args:
        saved: file for the state in between; removed by the caller when its results are written.
        key: identifies the study; a saved state with another key is not continued.

    Raises:
        InputError: the options, or their fit to the number of classes, are wrong.
    """
    check_options(options)
    line_search = {name: options[name] for name in ("step_size", "armijo")}
    study, patching = _started(probabilities, labels, saved, key, line_search)
    last, classes = options["iterations"], probabilities.shape[1]
    last_save = time.monotonic()
    for iteration in range(len(study.history), last + 1):
        began = time.perf_counter()
        users = sample_users(family, classes, iteration, options)
        errors = patching.errors(users).cpu().numpy()
        if iteration in (*options["snapshots"], last):
            study.snapshots[iteration] = errors
        worst = int(errors.argmax())
        patch = patching.patch(users.only(worst)) if iteration < last else None
        seconds = time.perf_counter() - began
        study.history.append(_row(iteration, errors, study.brier, worst, patch, seconds))
        study.brier += patch.brier_change if patch else 0.0
        if progress:
            progress(iteration + 1, last + 1, f"worst {errors[worst]:.4f}")
        if time.monotonic() - last_save > SECONDS_BETWEEN_SAVES:
            _save(study, patching, saved, key)
            last_save = time.monotonic()
    if options["floor_draws"]:
        users = sample_users(family, classes, last, options)
        noise = patching.noise_errors(users, options["floor_draws"], options["seed"])
        study.floor = noise.cpu().numpy()
    return study


def _row(
    iteration: int,
    errors: NDArray[np.float64],
    brier: float,
    worst: int,
    patch: GainPatch | None,
    seconds: float,
) -> list[float]:
    """One line of the history: before the patch, except for what the patch did."""
    spread = [float(np.quantile(errors, level)) for level in QUANTILES.values()]
    nothing = GainPatch(np.nan, np.nan, 0.0, np.nan, 0.0, 0)
    low, high, step, _, _, points = patch or nothing
    scores = [float(errors[worst]), float(errors.mean()), *spread, brier]
    return [iteration, *scores, worst, low, high, step, points, seconds]


def _started(
    probabilities: Tensor, labels: Tensor, saved: Path, key: str, line_search: dict[str, float]
) -> tuple[Study, GainPatching]:
    """The study as it was saved under this key, or from the beginning."""
    try:
        state = read_npz(saved)
    except (FileNotFoundError, CorruptFile):
        state = {}
    if not state or str(state["key"]) != key:
        patching = GainPatching(probabilities, labels, **line_search)
        return Study(patching.brier_score()), patching
    moved = torch.from_numpy(state["probabilities"]).to(probabilities.device)
    snapshots = dict(zip(state["snapshot_at"].tolist(), state["snapshots"], strict=True))
    study = Study(float(state["brier"]), state["history"].tolist(), snapshots)
    return study, GainPatching(moved, labels, **line_search)


def _save(study: Study, patching: GainPatching, path: Path, key: str) -> None:
    write_npz(
        path,
        key=np.array(key),
        probabilities=patching.probabilities.cpu().numpy(),
        brier=np.float64(study.brier),
        history=np.array(study.history),
        snapshot_at=np.array(list(study.snapshots), dtype=np.int64),
        snapshots=np.array(list(study.snapshots.values())),
    )
