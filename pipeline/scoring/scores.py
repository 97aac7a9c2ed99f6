"""The scores of benchmarks: written after an evaluation, and asked for by the report.

The rows of calibrators that were not requested stay, because another suite made them. Rows of a
calibrator that conf/calibrator no longer has are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from pipeline.harness.artifacts import read_npz
from pipeline.harness.cache import record_of
from pipeline.harness.command import CONF, UnitsFailed, UsageError
from pipeline.harness.progress import say
from pipeline.harness.settings import Settings
from pipeline.harness.units import Unit
from pipeline.scoring.across_splits import kept_across_splits
from pipeline.scoring.files import (
    CURVE_COLUMNS,
    ROW_COLUMNS,
    ScoreFiles,
    Scores,
    difference,
    score_files,
    table_of,
    without_folders,
    write_files,
)
from pipeline.scoring.points import find_logits
from pipeline.scoring.tidy import Row, Scored, curves_of, draws_of, rows_of


def write_scores(units: Sequence[Unit]) -> list[Path]:
    """Write the files of one benchmark from its evaluated units; return their paths.

    A calibrator gets rows once all of its splits are among `units`.

    Args:
        units: they are up to date.

    Raises:
        UsageError: rows that would stay in the files were made with other settings.
    """
    settings = units[0].settings
    complete = _complete(units)
    if not complete:
        return []
    header, files = _header(settings), score_files(settings)
    across = kept_across_splits(list(complete.values()))
    files.rows.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(settings.paths.data / "locks" / f"scores-{files.stem}.lock"):
        rows, curves, calibrators = _of_others(files, header, complete)
        for name, record in across.items():
            own, groups = complete[name], record["groups"]
            splits = [
                Scored(unit.split, record_of(unit.scores_path) or {}, read_npz(unit.scores_path))
                for unit in own
            ]
            rows.append(table_of(rows_of(name, splits, record["worst"]), ROW_COLUMNS))
            curves.append(table_of(curves_of(name, splits), CURVE_COLUMNS))
            rows += [table_of(group["rows"], ROW_COLUMNS) for group in groups.values()]
            curves += [table_of(group["curves"], CURVE_COLUMNS) for group in groups.values()]
            draws = {"": draws_of(splits)} | {key: g["draws"] for key, g in groups.items()}
            calibrators[name] = {
                "config": without_folders(own[0].settings.calibrator),
                "patches": _patches(own),
                "worst": record["worst"],
                "groups": {key: group["worst"] for key, group in groups.items()},
                **_where_any("worse_than_temperature", _worse_than_temperature(own)),
                **_where_any("draws", draws),
            }
        return write_files(files, {**header, "calibrators": calibrators}, rows, curves)


def _where_any(name: str, content: Any) -> dict[str, Any]:
    """An entry that a record has only where some of its content says something."""
    values = content.values() if isinstance(content, dict) else content
    return {name: content} if any(values) else {}


def _worse_than_temperature(units: Sequence[Unit]) -> list[bool]:
    """Per split whether held-out points preferred temperature scaling."""
    return [bool((record_of(u.fit_path) or {}).get("worse_than_temperature")) for u in units]


def _patches(units: Sequence[Unit]) -> list[int]:
    """The number of patches in each split; empty for a calibrator that does not patch."""
    fits = [read_npz(unit.fit_path) for unit in units]
    return [len(arrays["shifts_"]) for arrays in fits if "shifts_" in arrays]


def _complete(units: Sequence[Unit]) -> dict[str, list[Unit]]:
    """The units of each calibrator that has all splits, in the order of the splits."""
    count = units[0].settings.splits.count
    by_calibrator: dict[str, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.split):
        by_calibrator.setdefault(unit.calibrator, []).append(unit)
    incomplete = {name: len(s) for name, s in by_calibrator.items() if len(s) < count}
    if incomplete:
        say(
            f"{units[0].benchmark}: evaluated on fewer than {count} splits, so not yet in "
            f"results: {', '.join(f'{name} ({splits})' for name, splits in incomplete.items())}"
        )
    return {name: s for name, s in by_calibrator.items() if name not in incomplete}


def _header(settings: Settings) -> Row:
    """The settings and the logits behind all numbers in the files."""
    cached = find_logits(settings)
    details = without_folders({**cached.details, "sha256": cached.sha256})
    return {
        "benchmark": settings.benchmark.name,
        "evaluation": without_folders(asdict(settings.evaluation)),
        "splits": asdict(settings.splits),
        "logits": {k: v for k, v in details.items() if k != "versions"},
    }


def _of_others(
    files: ScoreFiles, header: Mapping[str, Any], written: Iterable[str]
) -> tuple[list[pd.DataFrame], list[pd.DataFrame], dict[str, Any]]:
    """Rows, curves and records of the calibrators that are not `written` and stay in the files."""
    are_there = all(path.is_file() for path in (files.rows, files.curves))
    scores = Scores.read(files) if are_there else None
    if scores is None:
        return [], [], {}
    stay = {
        name: record
        for name, record in scores.facts["calibrators"].items()
        if name not in written and (CONF / "calibrator" / f"{name}.yaml").is_file()
    }
    if other := difference(scores.facts, header):
        if stay:
            raise UsageError(
                f"{files.rows}: its rows of {', '.join(stay)} were made with {other}; give these "
                "results a place of their own (paths.results=…), or delete that file"
            )
        say(f"{files.rows}: replaces results made with {other}")
    rows, curves = ([t[t["calibrator"].isin(list(stay))]] for t in (scores.rows, scores.curves))
    return rows, curves, stay


class MissingScores(UnitsFailed):
    """Scores that the report needs are missing. One line, with the command that makes them."""


def wanted_scores(units: Sequence[Unit], command: str) -> dict[str, Scores]:
    """The scores of every benchmark among `units`, which name the requested calibrators.

    Raises:
        MissingScores: a calibrator has no rows, or rows of other settings; `command` makes them.
        CorruptFile: a file is damaged.
    """
    by_benchmark: dict[str, Scores] = {}
    for unit in units:
        files = score_files(unit.settings)
        scores = by_benchmark.get(unit.benchmark) or Scores.read(files)
        if scores is None:
            raise MissingScores(f"{files.rows}: not there; make it with: {command}")
        if reason := _why_not(unit, scores):
            without = "(or list the other methods in suite.calibrators)"
            raise MissingScores(f"{files.rows}: {reason}; make them with: {command} {without}")
        by_benchmark[unit.benchmark] = scores
    return by_benchmark


def _why_not(unit: Unit, scores: Scores) -> str:
    """Why the scores are not those of the unit's settings; empty where they are."""
    name, configured = unit.calibrator, scores.facts["calibrators"]
    if name not in configured or name not in scores.methods:
        return f"no rows of {name}"
    if configured[name]["config"] != without_folders(unit.settings.calibrator):
        return f"the rows of {name} are of another configuration of it"
    settings = {
        "splits": asdict(unit.settings.splits),
        "evaluation": without_folders(asdict(unit.settings.evaluation)),
        "logits": {"sha256": scores.facts["logits"].get("sha256")},
    }
    other = difference(scores.facts, settings)
    return f"its rows were made with {other}" if other else ""
