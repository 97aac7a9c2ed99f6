"""The scores of benchmarks: written after an evaluation, and asked for by the report.

The rows of calibrators that were not requested stay, because another command made them. Its
calibrators may lie in a folder that this command does not name (--config-dir).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..harness.artifacts import read_npz
from ..harness.cache import Record, record_of
from ..harness.lock import alone
from ..harness.parameters import UsageError
from ..harness.progress import say
from ..harness.settings import NAMING_FILES, Settings
from ..harness.units import Unit
from ..harness.workers import UnitsFailed
from .families import p_values_together
from .files import ScoreFiles, Scores, score_files, without_folders, write_files
from .points import CachedLogits
from .score_rows import Scored, curves_of, draws_of, rows_of


def with_all_splits(units: Sequence[Unit]) -> dict[str, list[Unit]]:
    """The units of each calibrator that has all splits, in the order of the splits."""
    count = units[0].settings.splits.count
    by_calibrator: dict[str, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.split):
        by_calibrator.setdefault(unit.calibrator, []).append(unit)
    return {name: splits for name, splits in by_calibrator.items() if len(splits) == count}


def write_scores(
    complete: Mapping[str, Sequence[Unit]], across: Mapping[str, Record], cached: CachedLogits
) -> list[Path]:
    """Write the files of one benchmark from its evaluated units; return their paths.

    Args:
        complete: by calibrator the units of all splits, which are up to date.
        across: by calibrator the records of scoring/across_splits.py.
        cached: the logits.

    Raises:
        UsageError: rows that would stay in the files were made with other settings.
    """
    settings = next(iter(complete.values()))[0].settings
    files = score_files(settings)
    logits = without_folders({**cached.details, "sha256": cached.sha256})
    logits.pop("versions", None)
    header = {"benchmark": settings.benchmark.name, **_behind(settings), "logits": logits}
    files.rows.parent.mkdir(parents=True, exist_ok=True)
    with writes_results(settings):
        rows, curves, calibrators = _of_others(files, header, complete)
        for name, record in across.items():
            splits = [_scored(unit) for unit in complete[name]]
            rows.append(rows_of(name, splits, record["worst"]))
            curves.append(curves_of(name, splits))
            for group in record["groups"].values():
                rows.append(group["rows"])
                curves.append(group["curves"])
            calibrators[name] = _facts_of(complete[name], splits, record)
        return write_files(files, {**header, "calibrators": calibrators}, rows, curves)


def _scored(unit: Unit) -> Scored:
    """What the evaluation of a unit wrote."""
    return Scored(unit.split, record_of(unit.scores_path) or {}, read_npz(unit.scores_path))


def _facts_of(units: Sequence[Unit], splits: Sequence[Scored], across: Record) -> dict[str, Any]:
    """The facts of one calibrator, which are no rows: its settings, patches, worst intervals.

    An entry that says nothing, such as draws that no test needs, is left out.
    """
    settings = units[0].settings
    groups = across["groups"]
    facts = {
        "config": without_folders(settings.calibrator),
        "patches": _patches(units),
        "worst": across["worst"],
        "groups": {name: group["worst"] for name, group in groups.items()},
    }
    fits = [record_of(unit.fit_path) or {} for unit in units]
    worse = [bool(fit.get("worse_than_temperature")) for fit in fits]
    if any(worse):
        facts["worse_than_temperature"] = worse
    draws = {"": draws_of(splits)}
    together = p_values_together({"": splits}, settings.evaluation.own or {})
    for name, group in groups.items():
        draws[name] = group["draws"]
        together[name] = group["together"]
    if any(draws.values()):
        facts["draws"] = draws
    if any(together.values()):
        facts["together"] = together
    return facts


def _patches(units: Sequence[Unit]) -> list[int]:
    """The number of patches of each fit, those of groups included; [] where a fit has none."""
    counts = []
    for unit in units:
        fit = read_npz(unit.fit_path)
        if "shifts_" in fit:
            counts.append(len(fit["shifts_"]) + len(fit.get("group_names_", ())))
    return counts


def writes_results(settings: Settings) -> AbstractContextManager[None]:
    """Keep other processes from writing the results, of which a report reads several files."""
    return alone(settings.paths.data / "locks" / "results.lock", str(settings.paths.results))


def _behind(settings: Settings) -> dict[str, Any]:
    evaluation = {"name": settings.evaluation.name, **settings.evaluation.measured()}
    return {"evaluation": without_folders(evaluation), "splits": asdict(settings.splits)}


def _difference(made: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first setting of splits or evaluation, or the logits, that differs; "" if none does."""
    for group in ("splits", "evaluation", "logits"):
        names = sorted({*made[group], *wanted[group]})
        if group == "evaluation":
            names = [name for name in names if name not in NAMING_FILES]
        elif group == "logits":
            names = ["sha256"]  # other details, such as versions, do not change the scores
        for name in names:
            value, other = made[group].get(name), wanted[group].get(name)
            if value != other:
                return f"{group}.{name}={value}, not {other}"
    return ""


def _of_others(
    files: ScoreFiles, header: Mapping[str, Any], written: Iterable[str]
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Rows, curves and records of the calibrators that are not `written` and stay in the files."""
    are_there = files.rows.is_file() and files.curves.is_file()
    scores = Scores.read(files) if are_there else None
    if scores is None:
        return [], [], {}
    calibrators = scores.facts["calibrators"]
    stay = {name: facts for name, facts in calibrators.items() if name not in written}
    other = _difference(scores.facts, header)
    if other:
        if stay:
            fix = "give these results a place of their own (paths.results=…), or delete that file"
            message = f"its rows of {', '.join(stay)} were made with {other}"
            raise UsageError(f"{files.rows}: {message}; {fix}")
        say(f"{files.rows}: replaces results made with {other}")
    rows = scores.rows[scores.rows["calibrator"].isin(list(stay))]
    curves = scores.curves[scores.curves["calibrator"].isin(list(stay))]
    return [rows], [curves], stay


def wanted_scores(units: Sequence[Unit], command: str) -> dict[str, Scores]:
    """Each benchmark's scores; UnitsFailed: no such rows, or of other settings (see `command`)."""
    by_benchmark: dict[str, Scores] = {}
    for unit in units:
        files = score_files(unit.settings)
        scores = by_benchmark.get(unit.benchmark) or Scores.read(files)
        if scores is None:
            raise UnitsFailed(f"{files.rows}: not there; make it with: {command}")
        reason = _why_not(unit, scores)
        if reason:
            without = "(or list the other methods in suite.calibrators)"
            raise UnitsFailed(f"{files.rows}: {reason}; make them with: {command} {without}")
        by_benchmark[unit.benchmark] = scores
    return by_benchmark


def _why_not(unit: Unit, scores: Scores) -> str:
    """Why the scores are not those of the unit's settings; empty where they are."""
    name = unit.calibrator
    calibrators = scores.facts["calibrators"]
    if name not in calibrators or name not in scores.methods:
        return f"no rows of {name}"
    if calibrators[name]["config"] != without_folders(unit.settings.calibrator):
        return f"the rows of {name} are of another configuration of it"
    wanted = {**_behind(unit.settings), "logits": scores.facts["logits"]}
    other = _difference(scores.facts, wanted)
    return f"its rows were made with {other}" if other else ""
