"""Stage 4 of 5: how patching proceeds against sampled users (the paper's appendix).

python -m pipeline.dynamics benchmark=cifar100_resnet
python -m pipeline.dynamics suite=cifar 'dynamics.families=[aligned]' dynamics.iterations=100

There is a study per benchmark and family of users, data/dynamics/<benchmark>/<family>.npz. The
stage also writes it as text, results/dynamics/<benchmark>/<family>/{history.csv,snapshots.csv,
dynamics.json}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from pipeline.harness.artifacts import json_text, read_npz, update_text
from pipeline.harness.cache import record_of
from pipeline.harness.code import code_digest
from pipeline.harness.command import command
from pipeline.harness.parallel import Task, run_tasks
from pipeline.harness.progress import say, say_files
from pipeline.harness.settings import Settings
from pipeline.harness.units import Request
from pipeline.logits import require_logits
from pipeline.scoring.dynamics_study import studied
from pipeline.scoring.files import csv_text, rounded
from pipeline.scoring.points import task_on_split


@command
def main(config: DictConfig) -> None:
    """Run the study on the requested benchmark, or on those that the suite names for it."""
    request = Request.from_hydra(config)
    if not HydraConfig.get().runtime.choices.get("benchmark"):
        request = replace(request, benchmarks=tuple(config.suite.get("dynamics") or ()))
    run_dynamics(request)


def run_dynamics(request: Request) -> None:
    """Study every benchmark and family that is not up to date, and write their text.

    Raises:
        UnitsFailed: studies that failed, after all others are done.
    """
    if not request.benchmarks:
        say(f"dynamics: nothing to do, suite.dynamics of {request.suite} is empty")
        return
    tasks = []
    for settings in request.benchmark_settings():
        require_logits([settings])
        families = settings.dynamics.families
        tasks += [dynamics_task(settings, family, request.splits[0]) for family in families]
    run_tasks("dynamics", tasks, one_by_one=True)
    for task in tasks:
        say_files(write_results(task))


def dynamics_task(settings: Settings, family: str, split: int) -> Task:
    """The study of one family of users on the calibration points of one split.

    Its key has the options, the points and the code; not the device.
    """
    benchmark = settings.benchmark.name
    options = {
        key: value
        for key, value in asdict(settings.dynamics).items()
        if key not in ("name", "families") and (key == family or not isinstance(value, Mapping))
    }  # options of other families have no effect
    code = code_digest(f"{__package__}.scoring.dynamics_study")
    return task_on_split(
        settings,
        split,
        f"{benchmark} {family}",
        settings.paths.data / "dynamics" / benchmark / f"{family}.npz",
        partial(studied, settings, family, split),
        {"family": family, "options": options, "code": code},
    )


def write_results(task: Task) -> list[Path]:
    """Write the text of a finished study; return its files."""
    record, arrays = record_of(task.path) or {}, read_npz(task.path)
    results = task.settings.paths.results
    folder = results / "dynamics" / record["benchmark"] / record["family"]
    content = {key: value for key, value in record.items() if key not in ("key", "arrays")}
    written = []
    for name in ("history", "snapshots"):
        start = f"{name}."
        columns = {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
        written.append(update_text(folder / f"{name}.csv", csv_text(pd.DataFrame(columns))))
    return [*written, update_text(folder / "dynamics.json", json_text(rounded(content)))]


if __name__ == "__main__":
    main()
