"""The state of a suite: units done, missing, stale and failed, by benchmark and calibrator.

utility-calibration status                 of what params.yaml says, which `dvc repro` runs
utility-calibration status suite=paper     of what the stages make with these arguments
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from omegaconf import DictConfig
from rich.table import Table

from .evaluate import evaluate_task
from .fit import fit_task
from .harness.cache import record_of
from .harness.command import CONF, command
from .harness.parallel import Task
from .harness.parameters import OF_A_RUN, key_of
from .harness.progress import console, say
from .harness.units import Request, Unit
from .logits import logits_task

PARAMETERS = CONF.parent / "params.yaml"
STATES = DONE, MISSING, STALE, FAILED = ("done", "missing", "stale", "failed")


def main() -> None:
    """The program: of the settings that are given, or else of those in params.yaml."""
    given = {key_of(text) for text in sys.argv[1:]}
    if given <= OF_A_RUN - {"params", "benchmark"} and PARAMETERS.is_file():
        sys.argv.append(f"params={PARAMETERS}")
    show()


@command
def show(config: DictConfig) -> None:
    """Print the table, the reasons, and how many units are done."""
    found = states(Request.from_hydra(config).units())
    table = Table("benchmark", "calibrator")
    for heading in STATES:
        table.add_column(heading, justify="right")
    counts = Counter((unit.benchmark, unit.calibrator, state) for unit, state, _ in found)
    for pair in dict.fromkeys(key[:2] for key in counts):
        table.add_row(*pair, *(str(counts[*pair, name]) for name in STATES))
    console.print(table)
    for name in (MISSING, STALE, FAILED):
        reasons = Counter(why for _, state, why in found if state == name)
        for why, count in reasons.most_common():
            say(f"{name}: {count} units ({why})")
    say(f"{sum(state == DONE for _, state, _ in found)} of {len(found)} units are done")


def states(units: Sequence[Unit]) -> list[tuple[Unit, str, str]]:
    """Each unit with its state, one of STATES, by the stages' own keys, and the reason."""
    runs = []
    for path in (units[0].settings.paths.data / "log").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # cut by a kill
                runs.append(json.loads(line))
    # Of each unit that of the last attempt, which is "" where it succeeded.
    errors = {run["unit"]: run["error"] for run in sorted(runs, key=lambda run: run["finished"])}
    logits: dict[str, tuple[str, str] | None] = {}
    found = []
    for unit in units:
        if unit.benchmark not in logits:
            state = _not_done(logits_task(unit.settings), "no logits", errors)
            logits[unit.benchmark] = state
        state = logits[unit.benchmark] or _not_done(fit_task(unit), "not fitted", errors)
        state = state or _not_done(evaluate_task(unit), "not evaluated", errors)
        found.append((unit, *(state or (DONE, ""))))
    return found


def _not_done(task: Task, absent: str, errors: dict[str, str]) -> tuple[str, str] | None:
    """The state of a task that is not up to date, with the reason; None where it is."""
    if task.is_current():
        return None
    if error := errors.get(task.place.as_posix()):
        return FAILED, error
    if (record := record_of(task.path)) is None:
        return MISSING, absent
    settings = task.settings
    for name, key, wanted in (
        ("calibrator", "config", settings.calibrator),
        ("splits", "splits", asdict(settings.splits)),
        ("evaluation", "evaluation", asdict(settings.evaluation)),
    ):
        if key in record and record[key] != wanted:
            return STALE, f"other settings of {name}"
    return STALE, "other input or other code"
