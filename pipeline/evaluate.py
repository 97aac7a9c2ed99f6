"""Stage 3 of 5: score each fitted calibrator on the test points of every split.

utility-calibration evaluate benchmark=cifar10_resnet calibrator=temperature split=3
utility-calibration evaluate suite=cifar evaluation=paper_batches

It ends with the benchmark's scores as text, results/scores/<benchmark>.csv (pipeline/scoring/).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial

from omegaconf import DictConfig

from .fit import fit_task
from .harness.artifacts import CorruptFile, read_json, sha256_of, sha256_of_json, write_json
from .harness.cache import Record, Save, record_of
from .harness.code import code_digest, targets_in
from .harness.command import UnitsFailed, command
from .harness.parallel import Progress, Task, run_tasks
from .harness.progress import say_files
from .harness.units import Request, Unit
from .logits import require_logits
from .scoring.points import find_logits, task_on_split


@command
def main(config: DictConfig) -> None:
    """Evaluate the requested units."""
    run_evaluate(Request.from_hydra(config).units())


def run_evaluate(units: Sequence[Unit]) -> None:
    """Evaluate every fitted unit that is not up to date, and write the scores of the benchmarks.

    UnitsFailed names those without a current fit or that failed, after all others are done.
    """
    require_logits(unit.settings for unit in units)
    ready, failures = [unit for unit in units if fit_task(unit).is_current()], []
    if count := len(units) - len(ready):
        first = next(unit for unit in units if unit not in ready)
        told = "not fitted with these settings and this code"
        fix = "run utility-calibration fit with the same arguments first"
        failures.append(f"{first}{f' and {count - 1} more' if count > 1 else ''}: {told}; {fix}")
    try:
        run_tasks("evaluate", [evaluate_task(unit) for unit in ready])
    except UnitsFailed as error:
        failures.append(str(error))
    for name in dict.fromkeys(unit.benchmark for unit in ready):
        pairs = {unit.calibrator: unit for unit in ready if unit.benchmark == name}.values()
        every = [replace(u, split=k) for u in pairs for k in range(u.settings.splits.count)]
        # Old scores may still be those of an old fit.
        fitted = [unit for unit in every if fit_task(unit).is_current()]
        if current := [unit for unit in fitted if evaluate_task(unit).is_current()]:
            _write_scores(current)
    if failures:
        raise UnitsFailed("; ".join(failures))


def evaluate_task(unit: Unit) -> Task:
    """The task of scoring a fitted unit.

    Its key has the fitted arrays, their predictions, the test points, the options and the code. It
    does not have the fit's own key, so a new fit with the same arrays keeps its scores.
    """
    fit, evaluation = record_of(unit.fit_path) or {}, asdict(unit.settings.evaluation)
    content = {
        "fitted": [fit.get("arrays"), fit.get("predictions")],
        "similarity": find_logits(unit.settings).similarity_sha256,
        "evaluation": evaluation,
        "code": code_digest(
            "utility_calibration.pipeline.scoring.held_out", *targets_in(evaluation)
        ),
    }
    make = partial(_evaluated, unit)
    return task_on_split(unit.settings, unit.split, str(unit), unit.scores_path, make, content)


def _evaluated(unit: Unit, device: str, progress: Progress) -> tuple[Save, Record]:
    """Evaluate; what this imports takes seconds, which `pipeline/status.py` does without."""
    from .scoring.held_out import evaluated

    return evaluated(unit, device, progress)


def _write_scores(units: Sequence[Unit]) -> None:
    """Write a benchmark's scores as text, unless the files are those that the same units made."""
    settings, logits = units[0].settings, find_logits(units[0].settings)
    content = {
        "units": [(str(unit), evaluate_task(unit).key) for unit in units],
        "logits": [logits.sha256, logits.arrays_sha256, logits.details],
        "code": code_digest("utility_calibration.pipeline.scoring.scores"),
    }
    results, stamp = settings.paths.results, units[0].scores_path.parents[1] / "written.json"
    key = sha256_of_json(content)
    with suppress(OSError, CorruptFile):
        made = read_json(stamp)
        files = made["files"].items()
        if made["key"] == key and all(sha256_of(results / name) == sha for name, sha in files):
            return
    from .scoring.scores import write_scores  # with torch: it takes seconds

    written = write_scores(units)
    say_files(written)
    sums = {str(path.relative_to(results)): sha256_of(path) for path in written}
    write_json(stamp, {"key": key, "files": sums})
