"""Stage 2, unit: benchmark x calibrator x split. Fit on the calibration part, keep the parameters.

python -m pipeline.fit benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.fit suite=cifar calibrator=vector
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from omegaconf import DictConfig

from pipeline.harness.archives import publish, record_inside, restore_copy
from pipeline.harness.artifacts import sha256_of_json, write_json
from pipeline.harness.cached_logits import CachedLogits, find_logits, load_logits
from pipeline.harness.columns import columns_of
from pipeline.harness.command import command
from pipeline.harness.fingerprint import source_fingerprint, targets_in
from pipeline.harness.locks import claimed, holder_of, noting_failure
from pipeline.harness.machine import device_name, now, run_notes
from pipeline.harness.runner import Outcome, SizedTask, run_stage, side_by_side
from pipeline.harness.shared import adopt, share
from pipeline.harness.splits import indices_of
from pipeline.harness.targets import made_of
from pipeline.harness.units import Request, Settings, Unit
from pipeline.logits import are_missing, run_logits

PARAMETERS_SHA256 = "parameters_sha256"
SPLIT_INDICES = "pipeline.harness.splits.split_indices"


class UnitTask(SizedTask, Protocol):
    """Something to do with one unit."""

    @property
    def unit(self) -> Unit:
        """The unit."""


T = TypeVar("T", bound=UnitTask)


@dataclass(frozen=True)
class FitTask:
    """One unit with the logits it fits on and the hash that its result will carry."""

    unit: Unit
    logits: CachedLogits
    hash: str

    @property
    def settings(self) -> Settings:
        """The unit's configuration."""
        return self.unit.settings

    @property
    def size(self) -> int:
        """Its logits, n x C."""
        return self.logits.n * self.logits.classes

    def __str__(self) -> str:
        return str(self.unit)


@command
def main(config: DictConfig) -> None:
    """Fit the units asked for."""
    request = Request.from_hydra(config)
    run_fit(request.units(), request)


def run_fit(units: Sequence[Unit], request: Request | None = None) -> None:
    """Fit every unit that is not up to date; share the suite's if all succeed.

    Raises:
        UnitsFailed: the units that failed, after all others are done.
    """
    tasks = fit_tasks(units)
    run = partial(run_units, "fit", fit_unit)
    for task in run_stage("fit", tasks, is_fitted, run, lambda task: task.unit.calibrator):
        restore_copy(task.unit.files.parameters, PARAMETERS_SHA256, task.unit.files.fit)
        holder_of(task.unit.files.fit_running)  # removes the lock of who was killed at the very end
    if request is not None:
        for calibrator in request.calibrators:
            own = [unit for unit in units if unit.calibrator == calibrator]
            files = {unit.shared_name: unit.files.parameters for unit in own}
            share(request, own[0].settings, f"fit/{calibrator}", files)


def run_units(title: str, function: Callable[[T], object], tasks: Sequence[T]) -> list[Outcome]:
    """`side_by_side`, once the columns that the tasks' units are for are known to exist."""
    check_columns([task.unit for task in tasks])
    return side_by_side(title, function, tasks)


def check_columns(units: Sequence[Unit]) -> None:
    """Tell an unknown metric before hours of work; imports torch, so where there is work only.

    Raises:
        InputError: a benchmark's key that is no metric.
    """
    for unit in {unit.benchmark: unit for unit in units}.values():
        columns_of(unit.settings)


def fit_tasks(units: Sequence[Unit]) -> list[FitTask]:
    """Units with their logits; a benchmark without logits gets them first."""
    adopt_parameters(units)
    logits: dict[str, CachedLogits] = {}
    for unit in units:
        if unit.benchmark not in logits:
            logits[unit.benchmark] = logits_of(unit.settings)
    return [
        FitTask(unit, logits[unit.benchmark], fit_hash(unit, logits[unit.benchmark].sha256))
        for unit in units
    ]


def adopt_parameters(units: Sequence[Unit]) -> None:
    """Take the parameters that came by `dvc pull` where a unit has none."""
    for unit in units:
        files = {unit.shared_name: unit.files.parameters}
        for path in adopt(unit.settings, f"fit/{unit.calibrator}", files):
            restore_copy(path, PARAMETERS_SHA256, unit.files.fit)


def logits_of(settings: Settings) -> CachedLogits:
    """A benchmark's cached logits, made first where there are none or others than asked for."""
    if are_missing(settings):
        columns_of(settings)
        run_logits([{**settings, "force": False}])  # `force` asks for the fits
    return find_logits(settings)


def fit_hash(unit: Unit, logits_sha256: str) -> str:
    """Identifies a fit: configuration, split, logits and code; not the device or number of jobs."""
    calibrator, splits = unit.settings["calibrator"], unit.settings["splits"]
    return sha256_of_json(
        {
            "calibrator": calibrator,
            "split": unit.split,
            "seed": splits["seed"],
            "calibration_fraction": splits["calibration_fraction"],
            "logits": logits_sha256,
            "code": source_fingerprint(*targets_in(calibrator), SPLIT_INDICES),
        }
    )


def is_fitted(task: FitTask) -> bool:
    """Whether the unit's folder holds whole parameters of this very fit."""
    record = record_inside(task.unit.files.parameters, PARAMETERS_SHA256)
    return record is not None and record.get("hash") == task.hash


def fit_unit(task: FitTask) -> bool:
    """Fit one unit and publish parameters.npz with fit.json; False where another process just did.

    Raises:
        Busy: another process fits it now.
        OtherSettings: another process fits it with other settings.
    """
    files, settings = task.unit.files, task.unit.settings
    with noting_failure(files.fit_failed), claimed(files.fit_running, str(task), task.hash):
        if not settings["force"] and is_fitted(task):
            return False
        device = device_name(settings["device"])
        began = now()
        calibrator = _fitted(task, device)
        notes = run_notes(began, device)
        log = getattr(calibrator, "tuning_log_", [])
        record = {
            "hash": task.hash,
            "benchmark": task.unit.benchmark,
            "calibrator": task.unit.calibrator,
            "split": task.unit.split,
            "config": settings["calibrator"],
            "splits": settings["splits"],
            "logits_sha256": task.logits.sha256,
            "tuning_log": [{k: v for k, v in run.items() if k != "seconds"} for run in log],
        }
        publish(files.parameters, calibrator.save, record, PARAMETERS_SHA256, files.fit)
        notes["tuning_seconds"] = [run["seconds"] for run in log if "seconds" in run]
        write_json(files.fit_run, {"hash": task.hash, **notes})
    return True


def _fitted(task: FitTask, device: str) -> Any:
    """The calibrator, fitted on the calibration points of the split."""
    import torch

    logits, labels = load_logits(task.logits.path, task.logits.sha256)
    points, _ = indices_of(task.settings, len(labels), task.unit.split)
    calibrator = made_of(task.settings["calibrator"])
    calibrator.fit(
        torch.from_numpy(logits[points]).to(device), torch.from_numpy(labels[points]).to(device)
    )
    return calibrator


if __name__ == "__main__":
    main()
