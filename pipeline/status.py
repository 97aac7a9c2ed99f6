"""Where a suite stands: splits done, running, stale, missing, failed, by benchmark and calibrator.

python -m pipeline.status suite=paper
python -m pipeline.status suite=paper --plan sweep.gpus=8       (what would run, and what it takes)

Only small records are read; that the arrays beside them are whole is checked by who uses them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig
from rich.table import Table

from pipeline.evaluate import adopt_scores
from pipeline.fit import adopt_parameters, fit_hash
from pipeline.harness.artifacts import read_json_if_whole, read_record
from pipeline.harness.cached_logits import read_sidecar, running_path
from pipeline.harness.command import command
from pipeline.harness.locks import holder_of
from pipeline.harness.progress import console, say
from pipeline.harness.units import Request, Settings, Unit
from pipeline.logits import failure_of
from pipeline.plan import plan_lines

DONE, RUNNING, STALE, MISSING, FAILED = "done", "running", "stale", "missing", "failed"
STATES = (DONE, RUNNING, STALE, MISSING, FAILED)


@dataclass(frozen=True)
class LogitsState:
    """Of a benchmark's logits: what they are, who makes them, why that failed."""

    sha256: str | None = None
    running: str | None = None
    failure: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> LogitsState:
        """What lies beside them says."""
        record = read_sidecar(settings) or {}
        holder = holder_of(running_path(settings))
        running = None if holder is None else _told(holder)
        return cls(record.get("sha256"), running, failure_of(settings))


@dataclass(frozen=True)
class State:
    """Of one unit: one of STATES, and why it is stale, or failed, or who runs it."""

    unit: Unit
    name: str
    why: str = ""


def state_of(unit: Unit, logits: LogitsState) -> State:
    """What the unit's folder says; a failure, its logits' first, is told until the unit is done."""
    state = _state_of(unit, logits.sha256)
    if state.name in (STALE, MISSING):
        if logits.running is not None:
            return State(unit, state.name, f"its logits are made on {logits.running}")
        if logits.failure is not None:
            return State(unit, FAILED, f"logits {unit.benchmark}: {logits.failure}")
        for path in (unit.files.fit.failed, unit.files.scores.failed):
            if (failure := read_json_if_whole(path)) is not None:
                return State(unit, FAILED, f"{failure.get('error')}")
    return state


def _state_of(unit: Unit, logits_sha256: str | None) -> State:
    files = unit.files
    for lock in (files.fit.running, files.scores.running):
        if (holder := holder_of(lock)) is not None:
            return State(unit, RUNNING, _told(holder))
    fit = read_record(files.fit.json)
    if fit is None or not files.fit.path.is_file():
        return State(unit, MISSING, "not fitted")
    if logits_sha256 is None or fit["hash"] != fit_hash(unit, logits_sha256):
        return State(unit, STALE, _why(unit, fit, logits_sha256))
    scores = read_record(files.scores.json)
    if scores is None or not files.scores.path.is_file():
        return State(unit, MISSING, "not evaluated")
    if scores["parameters_sha256"] != fit["parameters_sha256"]:
        return State(unit, STALE, "fitted again")
    if scores["evaluation"] != unit.settings["evaluation"]:
        return State(unit, STALE, "settings")
    return State(unit, DONE)


def _told(holder: dict[str, Any]) -> str:
    return f"{holder.get('host', '?')} since {holder.get('since', '?')}"


def _why(unit: Unit, fit: dict[str, Any], logits_sha256: str | None) -> str:
    """What differs between the fit that lies there and the one asked for."""
    splits = ("seed", "calibration_fraction")
    if logits_sha256 is None:
        return "no logits"
    if fit["config"] != unit.settings["calibrator"] or any(
        fit["splits"][key] != unit.settings["splits"][key] for key in splits
    ):
        return "settings"
    return "logits" if fit["logits_sha256"] != logits_sha256 else "code"


def states(units: Sequence[Unit]) -> list[State]:
    """The state of every unit; what came by `dvc pull` is taken first."""
    adopt_parameters(units)
    adopt_scores(units)
    first = {unit.benchmark: unit for unit in units}
    logits = {name: LogitsState.of(unit.settings) for name, unit in first.items()}
    return [state_of(unit, logits[unit.benchmark]) for unit in units]


@command
def main(config: DictConfig) -> None:
    """Print the table, and the plan where `--plan` asked for it."""
    found = states(Request.from_hydra(config).units())
    console.print(status_table(found))
    for line in details(found):
        say(line)
    if PLAN:
        waiting = [state.unit for state in found if state.name not in (DONE, RUNNING)]
        for line in plan_lines(waiting, waiting[0].settings["sweep"] if waiting else {}):
            say(line)


def status_table(found: Sequence[State]) -> Table:
    """One line per benchmark and calibrator."""
    table = Table()
    for heading in ("benchmark", "calibrator"):
        table.add_column(heading)
    for heading in STATES:
        table.add_column(heading, justify="right")
    rows: dict[tuple[str, str], Counter[str]] = {}
    for state in found:
        key = (state.unit.benchmark, state.unit.calibrator)
        rows.setdefault(key, Counter())[state.name] += 1
    for key, counts in rows.items():
        table.add_row(*key, *(str(counts[name]) for name in STATES))
    return table


def details(found: Sequence[State]) -> Iterator[str]:
    """Who runs what, why units are stale or missing, and the sums."""
    yield from (f"running: {state.unit} on {state.why}" for state in found if state.name == RUNNING)
    for name in (STALE, MISSING, FAILED):
        reasons = Counter(state.why for state in found if state.name == name)
        yield from (f"{name}: {count} units ({why})" for why, count in reasons.most_common())
    yield f"{sum(state.name == DONE for state in found)} of {len(found)} units are done"


PLAN = "--plan" in sys.argv
if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--plan"]
    main()
