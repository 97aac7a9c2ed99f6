"""Stage 4 of 5: how patching proceeds against sampled users (the paper's appendix).

utility-calibration dynamics benchmark=cifar100_resnet
utility-calibration dynamics suite=cifar 'dynamics.families=[aligned]' dynamics.iterations=100

A study of a benchmark and family of users is data/dynamics/<benchmark>/<family>.npz, and as text
results/dynamics/<benchmark>/<family>/{history.csv,snapshots.csv,dynamics.json}.
"""

from dataclasses import replace
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from .harness.artifacts import json_text, read_npz, write_text
from .harness.cache import record_of
from .harness.command import command
from .harness.parallel import run_tasks
from .harness.progress import say, say_files
from .harness.units import Request
from .logits import require_logits
from .plan import Plan, dynamics_step
from .scoring.files import csv_text, rounded


@command
def main(config: DictConfig) -> None:
    """Run the study on the requested benchmark, or on those that the suite names for it."""
    request = Request.from_hydra(config)
    if not HydraConfig.get().runtime.choices.get("benchmark"):
        request = replace(request, benchmarks=tuple(config.suite.get("dynamics") or ()))
    run_dynamics(request)


def run_dynamics(request: Request) -> None:
    """Study every benchmark and family that is not up to date, and write their text."""
    if not request.benchmarks:
        say(f"dynamics: nothing to do, suite.dynamics of {request.suite} is empty")
        return
    plan = Plan(request.units())
    require_logits(plan)
    tasks = [
        dynamics_step(settings, family, request.splits[0])
        for settings in plan.settings.values()
        for family in settings.dynamics.families
    ]
    run_tasks("dynamics", tasks, one_by_one=True)
    for task in tasks:
        record, tables = record_of(task.path) or {}, dict[str, dict[str, Any]]()
        for key, values in read_npz(task.path).items():
            name, _, column = key.partition(".")
            tables.setdefault(name, {})[column] = values
        texts = {f"{name}.csv": csv_text(pd.DataFrame(table)) for name, table in tables.items()}
        content = {key: value for key, value in record.items() if key not in ("key", "arrays")}
        texts["dynamics.json"] = json_text(rounded(content))
        folder = task.settings.paths.results / "dynamics" / record["benchmark"] / record["family"]
        say_files([write_text(folder / name, text) for name, text in texts.items()])
