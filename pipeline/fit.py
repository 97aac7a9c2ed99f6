"""Stage 2, unit: benchmark x calibrator x split. Fit on the calibration part, keep the parameters.

python -m pipeline.fit benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.fit suite=cifar calibrator=vector
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig

from pipeline.harness.archives import Archive
from pipeline.harness.artifacts import sha256_of_json
from pipeline.harness.cached_logits import CachedLogits, find_logits, load_logits, rows_of
from pipeline.harness.columns import columns_of
from pipeline.harness.command import command
from pipeline.harness.fingerprint import source_fingerprint, targets_in
from pipeline.harness.splits import indices_of
from pipeline.harness.targets import made_of
from pipeline.harness.unit_stage import Save, UnitTask, adopt_archives, make_once, run_unit_stage
from pipeline.harness.units import Request, Settings, Unit
from pipeline.logits import are_missing, run_logits

SPLIT_INDICES = "pipeline.harness.splits.split_indices"


class FitTask(UnitTask):
    """One unit to fit."""

    @property
    def archive(self) -> Archive:
        """The fitted parameters."""
        return self.unit.files.fit


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
    run_unit_stage("fit", fit_tasks(units), fit_unit, request)


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
    adopt_archives(units, lambda unit: unit.files.fit)


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


def fit_unit(task: FitTask) -> bool:
    """Fit one unit and publish parameters.npz with fit.json; see `make_once`."""
    return make_once(task, _fitted)


def _fitted(task: FitTask, device: str) -> tuple[Save, dict[str, Any], dict[str, Any]]:
    """The calibrator, fitted on the calibration points of the split, and what to keep of that."""
    import torch

    logits, labels = load_logits(task.logits.path, task.logits.sha256)
    points, _ = indices_of(task.settings, len(labels), task.unit.split)
    calibrator = made_of(task.settings["calibrator"])
    calibrator.fit(
        torch.from_numpy(rows_of(logits, points)).to(device),
        torch.from_numpy(labels[points]).to(device),
    )
    log = getattr(calibrator, "tuning_log_", [])
    record = {
        "benchmark": task.unit.benchmark,
        "calibrator": task.unit.calibrator,
        "split": task.unit.split,
        "config": task.settings["calibrator"],
        "splits": task.settings["splits"],
        "logits_sha256": task.logits.sha256,
        "tuning_log": [{k: v for k, v in run.items() if k != "seconds"} for run in log],
    }
    seconds = {"tuning_seconds": [run["seconds"] for run in log if "seconds" in run]}
    return calibrator.save, record, seconds


if __name__ == "__main__":
    main()
