"""Stage 2, unit: benchmark x calibrator x split. Fit on the calibration part, keep the parameters.

python -m pipeline.fit benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.fit suite=cifar calibrator=vector
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig

from pipeline.harness.artifacts import read_json_if_whole, sha256_of, sha256_of_json, write_json
from pipeline.harness.cached_logits import CachedLogits, find_logits, load_logits
from pipeline.harness.columns import columns_of
from pipeline.harness.command import command
from pipeline.harness.fingerprint import source_fingerprint
from pipeline.harness.receipts import write_receipt
from pipeline.harness.runner import TINY, close, job_count, run_tasks
from pipeline.harness.splits import split_indices
from pipeline.harness.units import Request, Settings, Unit
from pipeline.logits import are_missing, run_logits, versions


@dataclass(frozen=True)
class FitTask:
    """One unit with the logits it fits on and the hash that its result will carry."""

    unit: Unit
    logits: CachedLogits
    hash: str

    def __str__(self) -> str:
        return str(self.unit)


@command
def main(config: DictConfig) -> None:
    """Fit the units asked for."""
    request = Request.from_hydra(config)
    run_fit(request.units(), request)


def run_fit(units: Sequence[Unit], request: Request | None = None) -> None:
    """Fit every unit that is not up to date; write the suite's receipts if all succeed.

    Raises:
        UnitsFailed: the units that failed, after all others are done.
    """
    tasks = fit_tasks(units)
    waiting = [task for task in tasks if task.unit.settings["force"] or not is_fitted(task)]
    outcomes = []
    if waiting:
        settings = units[0].settings
        sizes = [task.logits.n * task.logits.classes for task in waiting]
        jobs = job_count(settings["jobs"], sizes, device_name(settings["device"]))
        outcomes = run_tasks("fit", waiting, fit_unit, jobs, start_here=max(sizes) < TINY)
    done = {str(task) for task in waiting}
    kept = [task for task in tasks if str(task) not in done]
    close("fit", outcomes, kept, lambda task: task.unit.calibrator)
    if request is not None:
        for calibrator in request.calibrators:
            own = [task for task in tasks if task.unit.calibrator == calibrator]
            content = {str(task.unit): _receipt_entry(task) for task in own}
            write_receipt(request, own[0].unit.settings, f"fit/{calibrator}", content)


def fit_tasks(units: Sequence[Unit]) -> list[FitTask]:
    """Units with their logits; a benchmark without logits gets them first."""
    logits: dict[str, CachedLogits] = {}
    for unit in units:
        if unit.benchmark not in logits:
            columns_of(unit.settings)  # an unknown metric is told before hours of fitting
            logits[unit.benchmark] = logits_of(unit.settings)
    return [
        FitTask(unit, logits[unit.benchmark], fit_hash(unit, logits[unit.benchmark].sha256))
        for unit in units
    ]


def logits_of(settings: Settings) -> CachedLogits:
    """A benchmark's cached logits, made first where there are none or others than asked for."""
    if are_missing(settings):
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
            "code": source_fingerprint(calibrator["_target_"], "pipeline.harness.splits"),
        }
    )


def is_fitted(task: FitTask) -> bool:
    """Whether the unit's folder holds whole parameters of this very fit."""
    record = read_json_if_whole(task.unit.folder / "fit.json")
    parameters = task.unit.folder / "parameters.npz"
    return (
        record is not None
        and record.get("hash") == task.hash
        and parameters.is_file()
        and sha256_of(parameters) == record.get("parameters_sha256")
    )


def fit_unit(task: FitTask) -> None:
    """Fit one unit and write parameters.npz, then fit.json."""
    import torch

    unit, settings = task.unit, task.unit.settings
    logits, labels = load_logits(task.logits.path, task.logits.sha256)
    calibration, _ = split_indices(
        len(labels),
        unit.split,
        settings["splits"]["seed"],
        settings["splits"]["calibration_fraction"],
    )
    device = device_name(settings["device"])
    calibrator = instantiate(settings["calibrator"], _convert_="all")
    began = time.perf_counter()
    calibrator.fit(
        torch.from_numpy(logits[calibration]).to(device),
        torch.from_numpy(labels[calibration]).to(device),
    )
    seconds = time.perf_counter() - began
    unit.folder.mkdir(parents=True, exist_ok=True)
    calibrator.save(unit.folder / "parameters.npz")
    write_json(
        unit.folder / "fit.json",
        {
            "hash": task.hash,
            "benchmark": unit.benchmark,
            "calibrator": unit.calibrator,
            "split": unit.split,
            "config": settings["calibrator"],
            "splits": settings["splits"],
            "logits_sha256": task.logits.sha256,
            "parameters_sha256": sha256_of(unit.folder / "parameters.npz"),
            "tuning_log": getattr(calibrator, "tuning_log_", []),
            "seconds": seconds,
            "device": device,
            "versions": versions(),
        },
    )


def device_name(device: str) -> str:
    """`auto` becomes cuda where there is one, else cpu."""
    from pipeline.sources.inference import resolve_device

    return str(resolve_device(device))


def _receipt_entry(task: FitTask) -> dict[str, Any]:
    return {"hash": task.hash, "parameters_sha256": sha256_of(_parameters(task.unit))}


def _parameters(unit: Unit) -> Path:
    return unit.folder / "parameters.npz"


if __name__ == "__main__":
    main()
