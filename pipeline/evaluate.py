"""Stage 3 of 6: score each fitted calibrator on the test points of every split.

utility-calibration evaluate benchmark=cifar10_resnet calibrator=temperature split=3
utility-calibration evaluate suite=cifar evaluation=paper_batches

It ends with the benchmark's scores as text, results/scores/<benchmark>.csv (pipeline/scoring/).
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from omegaconf import DictConfig

from utility_calibration.metrics.measurement import Options
from utility_calibration.metrics.option_checks import check_known
from utility_calibration.metrics.registry import metrics_of

from .fit import run_fit
from .harness.artifacts import CorruptFile, read_json, sha256_of, write_json
from .harness.cache import record_of
from .harness.command import command
from .harness.parallel import run_tasks
from .harness.progress import say, say_files
from .harness.units import Request, Unit
from .harness.workers import UnitsFailed
from .logits import require_logits, with_logits
from .plan import Plan, not_fitted
from .scoring.held_out import options_of
from .scoring.points import CachedLogits
from .tasks import all_splits_task, key_of


@command
def main(config: DictConfig) -> float | None:
    """Evaluate the requested units; with an objective, fit them too and return its mean."""
    plan = with_logits(Plan(Request.from_hydra(config).units()))
    if config.objective is not None:
        return objective_of(plan, config.objective)
    run_evaluate(plan)
    return None


def objective_of(plan: Plan, metric: str) -> float:
    """Fit and evaluate the requested units, and return the mean of `metric` over them.

    A sweeper of Hydra, such as Optuna's, changes a setting of the fit and minimises this number.
    InputError: no such metric, or a benchmark's points lack what it needs; nothing is fitted then.
    """
    require_logits(plan)
    for settings in reversed(plan.settings.values()):  # the first benchmark first
        keys = [known.key for known in metrics_of(Options(**options_of(settings)))]
        check_known([metric], keys, "objective", f"metric of {settings.benchmark.name}")
    run_fit(plan)
    run_evaluate(plan)
    records = [record_of(unit.scores_path) or {} for unit in plan.units]
    mean = fmean(record["metrics"][metric] for record in records)
    say(f"{metric}: {mean:.7g}, the mean of {len(records)} units")
    return mean


def run_evaluate(plan: Plan) -> None:
    """Evaluate every fitted unit that is not up to date, and write the scores of the benchmarks.

    UnitsFailed names those whose fit is not up to date or that failed, after all others are done.
    CorruptFile: a benchmark has no logits.
    """
    # Of all splits: old scores of those that are not requested may be of an old fit.
    fitted = [unit for unit in plan.all_splits if plan.fit(unit).is_up_to_date()]
    are_fitted = set(fitted)
    absent = [unit for unit in plan.units if unit not in are_fitted]
    ready = [unit for unit in plan.units if unit in are_fitted]
    failures = []
    if absent:
        failures.append(not_fitted(absent))
    try:
        run_tasks("evaluate", [plan.score(unit) for unit in ready])
    except UnitsFailed as error:
        failures.append(str(error))
    for name in dict.fromkeys(unit.benchmark for unit in ready):
        scored: dict[Unit, str] = {}
        for unit in fitted:
            if unit.benchmark == name and plan.score(unit).is_up_to_date():
                scored[unit] = plan.score(unit).key
        if scored:
            _write_scores(scored, plan.found(name))
    if failures:
        raise UnitsFailed("; ".join(failures))


def _write_scores(scored: Mapping[Unit, str], logits: CachedLogits) -> None:
    """Write a benchmark's scores as text, unless the files are those that the same units made.

    `scored`: its units that are up to date, with their keys.
    """
    units = list(scored)
    settings = units[0].settings
    results = settings.paths.results
    content = {
        "units": [(str(unit), key) for unit, key in scored.items()],
        "logits": [logits.sha256, logits.arrays_sha256, logits.details],
    }
    key = key_of(content, f"{__package__}.scoring.scores", f"{__package__}.scoring.across_splits")
    stamp = units[0].scores_path.parents[1] / "written.json"
    if _are_written(stamp, key, results):
        return
    from .scoring.scores import with_all_splits, write_scores  # with pandas

    complete = with_all_splits(units)
    incomplete = Counter(unit.calibrator for unit in units if unit.calibrator not in complete)
    if incomplete:
        names = [f"{name} ({count})" for name, count in incomplete.items()]
        say(
            f"{units[0].benchmark}: evaluated on fewer than {settings.splits.count} splits, so not "
            f"yet in results: {', '.join(names)}"
        )
    tasks = {}
    for name, units_of_method in complete.items():
        tasks[name] = all_splits_task(units_of_method, logits)
    if not tasks:
        return
    run_tasks(f"worst ranges {settings.benchmark.name}", list(tasks.values()))
    records = {name: record_of(task.path) or {} for name, task in tasks.items()}
    written = write_scores(complete, records, logits)
    say_files(written)
    sums = {str(path.relative_to(results)): sha256_of(path) for path in written}
    write_json(stamp, {"key": key, "files": sums})


def _are_written(stamp: Path, key: str, results: Path) -> bool:
    """Whether the text of these scores is there, as the file `stamp` says, and unchanged."""
    with suppress(OSError, CorruptFile):
        written = read_json(stamp)
        if written["key"] != key:
            return False
        digests = written["files"].items()
        return all(sha256_of(results / name) == digest for name, digest in digests)
    return False
