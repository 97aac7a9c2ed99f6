"""Stage 2, unit: benchmark x calibrator x split. Fit on the calibration part, keep the parameters.

python -m pipeline.fit benchmark=cifar10_resnet calibrator=temperature split=3
python -m pipeline.fit suite=cifar calibrator=vector
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pipeline.harness.artifacts import sha256_of_json
from pipeline.harness.cache import Save, record_of
from pipeline.harness.cached_logits import CachedLogits, find_logits, load_logits, rows_of
from pipeline.harness.code import code_digest, targets_in
from pipeline.harness.columns import columns_of
from pipeline.harness.command import command
from pipeline.harness.parallel import run_tasks
from pipeline.harness.progress import say
from pipeline.harness.splits import indices_of
from pipeline.harness.targets import made_of
from pipeline.harness.units import Request, Settings, Unit
from pipeline.logits import require_logits

PREDICTED = 200
"""Test points whose probabilities identify what the fitted calibrator predicts."""


@dataclass(frozen=True)
class FitTask:
    """One unit to fit on its logits."""

    unit: Unit
    logits: CachedLogits
    key: str

    @classmethod
    def of(cls, unit: Unit, logits: CachedLogits) -> FitTask:
        """The task of fitting `unit`; its key has configuration, split, logits and code."""
        calibrator, splits = unit.settings["calibrator"], unit.settings["splits"]
        content = {
            "calibrator": calibrator,
            "split": unit.split,
            "seed": splits["seed"],
            "calibration_fraction": splits["calibration_fraction"],
            "logits": logits.sha256,
            "code": code_digest(*targets_in(calibrator), "pipeline.harness.splits"),
        }
        return cls(unit, logits, sha256_of_json(content))

    @property
    def settings(self) -> Settings:
        """The unit's configuration."""
        return self.unit.settings

    @property
    def path(self) -> Path:
        """Where the fitted calibrator lies."""
        return self.unit.fit_path

    @property
    def size(self) -> int:
        """Logits of the benchmark, n x C."""
        return self.logits.n * self.logits.classes

    @property
    def row(self) -> str:
        """The calibrator's name."""
        return self.unit.calibrator

    def __str__(self) -> str:
        return str(self.unit)

    def make(self, device: str, progress: Callable[..., None]) -> tuple[Save, dict[str, Any]]:
        """Fit the calibrator on the calibration points of the split."""
        import torch

        logits, labels = load_logits(self.logits.path, self.logits.sha256)
        points, test = indices_of(self.settings, len(labels), self.unit.split)
        calibrator = made_of(self.settings["calibrator"])
        calibrator.fit(
            torch.from_numpy(rows_of(logits, points)).to(device),
            torch.from_numpy(labels[points]).to(device),
        )
        rows = torch.from_numpy(rows_of(logits, test[:PREDICTED])).to(device)
        predicted = calibrator.predict_proba(rows).cpu().numpy().tobytes()
        log = getattr(calibrator, "tuning_log_", [])
        return calibrator.save, {
            "benchmark": self.unit.benchmark,
            "calibrator": self.unit.calibrator,
            "split": self.unit.split,
            "config": self.settings["calibrator"],
            "splits": self.settings["splits"],
            "logits_sha256": self.logits.sha256,
            "predictions": hashlib.sha256(predicted).hexdigest(),
            "tuning_log": [{k: v for k, v in run.items() if k != "seconds"} for run in log],
        }


@command
def main(config: DictConfig) -> None:
    """Fit the units asked for."""
    run_fit(Request.from_hydra(config).units())


def run_fit(units: Sequence[Unit]) -> None:
    """Fit every unit that is not up to date.

    Raises:
        UnitsFailed: the units that failed, after all others are done.
    """
    tasks = fit_tasks(units)
    say_replaced_seeds(units)
    run_tasks("fit", tasks)


def fit_tasks(units: Sequence[Unit]) -> list[FitTask]:
    """Units with their logits; a benchmark without logits, or with others, gets them first.

    Raises:
        InputError: a benchmark's column is no metric.
    """
    logits: dict[str, CachedLogits] = {}
    for unit in units:
        if unit.benchmark not in logits:
            columns_of(unit.settings)
            require_logits(unit.settings)
            logits[unit.benchmark] = find_logits(unit.settings)
    return [FitTask.of(unit, logits[unit.benchmark]) for unit in units]


def say_replaced_seeds(units: Sequence[Unit]) -> None:
    """Tell where units of another seed lie: they have the same place and are replaced."""
    told: set[str] = set()
    for unit in units:
        record, seed = record_of(unit.fit_path), unit.settings["splits"]["seed"]
        if unit.benchmark in told or record is None or record["splits"]["seed"] == seed:
            continue
        told.add(unit.benchmark)
        say(
            f"{unit.benchmark}: fits of seed {record['splits']['seed']} are replaced by those of "
            f"seed {seed}; give each seed its own paths.data and paths.results to keep both"
        )


if __name__ == "__main__":
    main()
