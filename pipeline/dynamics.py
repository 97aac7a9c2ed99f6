"""Stage 4 of 6: how patching proceeds against sampled users (the paper's appendix).

utility-calibration dynamics benchmark=cifar100_resnet
utility-calibration dynamics suite=cifar 'dynamics.families=[aligned]' dynamics.iterations=100

A study of a benchmark, family of users and split is data/dynamics/<benchmark>/<family>/<split>.npz.
As text results/dynamics/<benchmark>/<family>/ has history.csv, of all splits, and of the first one
snapshots.csv and dynamics.json.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd
from omegaconf import DictConfig

from .harness.artifacts import json_text, read_npz, write_text
from .harness.cache import record_of
from .harness.command import command
from .harness.parallel import run_tasks
from .harness.progress import say, say_files
from .harness.task import Task
from .harness.units import Request
from .logits import require_logits, with_logits
from .plan import Plan
from .scoring.dynamics_study import check_options
from .scoring.files import csv_text, rounded
from .tasks import dynamics_task


@command
def main(config: DictConfig) -> None:
    """Run the study on the requested benchmark, or on those that the suite names for it."""
    run_dynamics(Request.for_study(config, "dynamics"))


def run_dynamics(request: Request) -> None:
    """Study each benchmark, family and split that is not up to date, and write their text."""
    if not request.benchmarks:
        say(f"dynamics: nothing to do, suite.dynamics of {request.suite} is empty")
        return
    plan = with_logits(Plan(request.units()))
    require_logits(plan)
    studies: list[list[Task]] = []
    for name, settings in plan.settings.items():
        check_options(settings.dynamics, int(plan.found(name).details["classes"]))
        splits = request.splits[: settings.dynamics.splits]
        for family in settings.dynamics.families:
            study = [dynamics_task(settings, family, split) for split in splits]
            studies.append(study)
    run_tasks("dynamics", list(chain.from_iterable(studies)))
    for study in studies:
        write_study(study)


def write_study(tasks: Sequence[Task]) -> None:
    """Write the text of one family of users, whose splits are the tasks."""
    record = record_of(tasks[0].path) or {}
    folder = tasks[0].settings.paths.results / "dynamics" / record["benchmark"] / record["family"]
    arrays = {int(task.path.stem): read_npz(task.path) for task in tasks}
    histories = {split: _table(of_split, "history") for split, of_split in arrays.items()}
    history = pd.concat(histories, names=["split"]).reset_index("split")
    snapshots = _table(arrays[int(tasks[0].path.stem)], "snapshots")
    content = {key: value for key, value in record.items() if key not in ("key", "arrays")}
    texts = {
        "history.csv": csv_text(history),
        "snapshots.csv": csv_text(snapshots),
        "dynamics.json": json_text(rounded(content)),
    }
    say_files([write_text(folder / name, text) for name, text in texts.items()])


def _table(arrays: Mapping[str, Any], name: str) -> pd.DataFrame:
    """The table of which the arrays are the columns `<name>.<column>`."""
    start = f"{name}."
    columns = {key: values for key, values in arrays.items() if key.startswith(start)}
    return pd.DataFrame({key.removeprefix(start): values for key, values in columns.items()})
