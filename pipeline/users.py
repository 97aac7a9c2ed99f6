"""Stage 5 of 6: what a monotone map would save users (Proposition 3.1), and users of other priors.

utility-calibration users benchmark=cifar100_resnet
utility-calibration users suite=cifar users.prior_splits=10

A calibrator and split is data/users/<benchmark>/<calibrator>/<split>.npz. As text
results/users/<benchmark>/ has, over all calibrators, risk_gap.csv and risk_gap_splits.csv,
priors.csv, priors_medians.csv and priors_tau.csv, and users.json with the options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from omegaconf import DictConfig

from .harness.artifacts import json_text, read_npz, write_text
from .harness.cache import record_of
from .harness.command import command
from .harness.parallel import run_tasks
from .harness.progress import say, say_files
from .harness.settings import Settings
from .harness.task import Task
from .harness.units import Request, Unit
from .harness.workers import UnitsFailed
from .logits import require_logits, with_logits
from .plan import Plan, not_fitted
from .tasks import users_task


@command
def main(config: DictConfig) -> None:
    """Run the studies on the requested benchmark, or on those that the suite names for them."""
    run_users(Request.for_study(config, "users"))


def run_users(request: Request) -> None:
    """Study every fitted unit that is not up to date, and write the text of whole benchmarks.

    UnitsFailed names a unit whose fit is not up to date; nothing is studied then.
    """
    if not request.benchmarks:
        say(f"users: nothing to do, suite.users of {request.suite} is empty")
        return
    plan = with_logits(Plan(request.units()))
    require_logits(plan)
    units = [unit for unit in plan.units if unit.split < _splits(unit.settings)]
    absent = [unit for unit in units if not plan.fit(unit).is_up_to_date()]
    if absent:
        raise UnitsFailed(not_fitted(absent))
    tasks = {unit: users_task(unit, plan.found(unit.benchmark)) for unit in units}
    run_tasks("users", list(tasks.values()))
    for name, settings in plan.settings.items():
        of_benchmark = {unit: task for unit, task in tasks.items() if unit.benchmark == name}
        splits = {unit.split for unit in of_benchmark}
        calibrators = {unit.calibrator for unit in of_benchmark}
        if len(splits) < _splits(settings):
            say(f"{name}: studied on fewer than {_splits(settings)} splits, so not yet in results")
        elif not set(settings.suite.calibrators) <= calibrators:
            say(f"{name}: studied for some calibrators of the suite, so not yet in results")
        else:
            say_files(write_studies(settings, of_benchmark))


def _splits(settings: Settings) -> int:
    """The number of splits that are studied."""
    most = max(settings.users.risk_splits, settings.users.prior_splits)
    return min(most, settings.splits.count)


def write_studies(settings: Settings, tasks: Mapping[Unit, Task]) -> Sequence[Path]:
    """Write the text of one benchmark, whose units are studied."""
    from .scoring.files import csv_text, rounded  # with pandas
    from .scoring.users_study import floor_method, tables_of

    by_calibrator: dict[str, list[Task]] = {}
    for unit, task in sorted(tasks.items(), key=lambda pair: pair[0].split):
        by_calibrator.setdefault(unit.calibrator, []).append(task)
    ordered = [name for name in settings.suite.calibrators if name in by_calibrator]
    arrays = {}
    for name in ordered:
        arrays[name] = [read_npz(task.path) for task in by_calibrator[name]]
    record = record_of(by_calibrator[ordered[0]][0].path) or {}
    tables = tables_of(arrays, settings, int(record["classes"]))
    facts = {
        "benchmark": record["benchmark"],
        "n": record["n"],
        "n_test": record["n_test"],
        "classes": record["classes"],
        "calibrators": ordered,
        "floor_of": floor_method(ordered),
        "splits": asdict(settings.splits),
        "options": record["options"],
        "logits_sha256": record["logits_sha256"],
    }
    folder = settings.paths.results / "users" / record["benchmark"]
    texts = {f"{name}.csv": csv_text(table) for name, table in tables.items()}
    texts["users.json"] = json_text(rounded(facts))
    return [write_text(folder / name, text) for name, text in texts.items()]
