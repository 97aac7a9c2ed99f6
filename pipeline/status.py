"""Where a suite stands: units done, missing, stale and failed, by benchmark and calibrator.

python -m pipeline.status suite=paper
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig
from rich.table import Table

from pipeline.evaluate import EvaluateTask
from pipeline.fit import FitTask
from pipeline.harness.artifacts import CorruptFile
from pipeline.harness.cache import Record, is_current, record_of
from pipeline.harness.cached_logits import CachedLogits, find_logits
from pipeline.harness.command import command
from pipeline.harness.progress import console, say
from pipeline.harness.units import Request, Settings, Unit
from pipeline.logits import LogitsTask

DONE, MISSING, STALE, FAILED = "done", "missing", "stale", "failed"
STATES = (DONE, MISSING, STALE, FAILED)


@dataclass(frozen=True)
class State:
    """Of one unit: one of STATES, and the reason."""

    unit: Unit
    name: str
    why: str = ""


@command
def main(config: DictConfig) -> None:
    """Print the table, the reasons and the sum."""
    found = states(Request.from_hydra(config).units())
    console.print(status_table(found))
    for name in (MISSING, STALE, FAILED):
        reasons = Counter(state.why for state in found if state.name == name)
        for why, count in reasons.most_common():
            say(f"{name}: {count} units ({why})")
    say(f"{sum(state.name == DONE for state in found)} of {len(found)} units are done")


def states(units: Sequence[Unit]) -> list[State]:
    """The state of every unit, by the keys that the stages themselves ask for."""
    logits = {unit.benchmark: unit.settings for unit in units}
    found = {name: _logits_of(settings) for name, settings in logits.items()}
    errors = _last_errors(Path(units[0].settings["paths"]["data"]))
    return [_state(unit, found[unit.benchmark], errors) for unit in units]


def _state(unit: Unit, logits: CachedLogits | str, errors: dict[str, str]) -> State:
    if isinstance(logits, str):
        error = errors.get(f"logits/{unit.benchmark}")
        return State(unit, FAILED, error) if error else State(unit, MISSING, logits)
    fit = FitTask.of(unit, logits)
    task = EvaluateTask.of(fit)
    for one, absent in ((fit, "not fitted"), (task, "not evaluated")):
        if is_current(one.path, one.key):
            continue
        where = one.path.relative_to(unit.settings["paths"]["data"]).with_suffix("")
        if error := errors.get(str(where)):
            return State(unit, FAILED, error)
        record = record_of(one.path)
        return State(unit, STALE, _why(unit, record)) if record else State(unit, MISSING, absent)
    return State(unit, DONE)


def _why(unit: Unit, record: Record) -> str:
    """The first thing that differs between the unit that lies there and the one asked for."""
    for name, setting in (("config", "calibrator"), ("splits", "splits")):
        if name in record and record[name] != unit.settings[setting]:
            return f"other settings of {setting}"
    if "evaluation" in record and record["evaluation"] != unit.settings["evaluation"]:
        return "other settings of evaluation"
    return "other logits, other fit or other code"


def _logits_of(settings: Settings) -> CachedLogits | str:
    """The benchmark's logits, or why they are not there."""
    task = LogitsTask(settings)
    if not task.path.is_file():
        return "no logits"
    if not is_current(task.path, task.key):
        return "its logits are of other settings or code, or damaged"
    try:
        return find_logits(settings)
    except CorruptFile as error:
        return str(error)


def _last_errors(data: Path) -> dict[str, str]:
    """Why the last attempt to make a unit failed, by unit; nothing where it succeeded."""
    runs = []
    for path in (data / "log").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                runs.append(json.loads(line))
            except ValueError:  # cut by a kill
                continue
    return {run["unit"]: run["error"] for run in sorted(runs, key=lambda run: run["finished"])}


def status_table(found: Sequence[State]) -> Table:
    """One line per benchmark and calibrator."""
    table = Table("benchmark", "calibrator")
    for heading in STATES:
        table.add_column(heading, justify="right")
    rows: dict[tuple[str, str], Counter[str]] = {}
    for state in found:
        rows.setdefault((state.unit.benchmark, state.unit.calibrator), Counter())[state.name] += 1
    for key, counts in rows.items():
        table.add_row(*key, *(str(counts[name]) for name in STATES))
    return table


if __name__ == "__main__":
    main()
