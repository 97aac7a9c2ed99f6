"""Write the scores of one benchmark as text for people and for git, after the evaluation.

These are three files below `results/scores` (pipeline.scoring.files). The rows of calibrators that
were not requested stay, because another suite made them. Rows of a calibrator that conf/calibrator
no longer has are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from pipeline.harness.artifacts import read_json, read_npz
from pipeline.harness.cache import record_of
from pipeline.harness.command import CONF, UsageError
from pipeline.harness.progress import say
from pipeline.harness.settings import Settings
from pipeline.harness.units import Unit
from pipeline.scoring.across_splits import kept_across_splits
from pipeline.scoring.cached_logits import find_logits
from pipeline.scoring.files import (
    CURVE_COLUMNS,
    ROW_COLUMNS,
    ScoreFiles,
    difference,
    read_table,
    score_files,
    table_of,
    without_folders,
    write_files,
)
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
    header = _header(settings)
    across = kept_across_splits(list(complete.values()))
    files = score_files(settings)
    files.rows.parent.mkdir(parents=True, exist_ok=True)
    locks = settings.paths.data / "locks"
    with FileLock(locks / f"scores-{files.stem}.lock"):
        rows, curves, calibrators = _of_others(files, header, complete)
        for name, record in across.items():
            splits = [
                Scored(unit.split, record_of(unit.scores_path) or {}, read_npz(unit.scores_path))
                for unit in complete[name]
            ]
            rows.append(table_of(rows_of(name, splits, record["worst"]), ROW_COLUMNS))
            curves.append(table_of(curves_of(name, splits), CURVE_COLUMNS))
            for group in record["groups"].values():
                rows.append(table_of(group["rows"], ROW_COLUMNS))
                curves.append(table_of(group["curves"], CURVE_COLUMNS))
            calibrators[name] = {
                "config": without_folders(complete[name][0].settings.calibrator),
                "patches": _patches(complete[name]),
                "worst": record["worst"],
                "groups": {key: group["worst"] for key, group in record["groups"].items()},
                **_for_tests(complete[name], splits, record),
            }
        return write_files(files, {**header, "calibrators": calibrators}, rows, curves)


def _for_tests(
    units: Sequence[Unit], splits: Sequence[Scored], record: Mapping[str, Any]
) -> dict[str, Any]:
    """What the decisions need besides the rows; nothing where it is as usual.

    `worse_than_temperature`: per split whether held-out points preferred temperature scaling.
    `draws`: by group of points (empty: all points) the draws of few splits (tidy.draws_of).
    """
    worse = [bool((record_of(u.fit_path) or {}).get("worse_than_temperature")) for u in units]
    draws = {"": draws_of(splits)} | {k: group["draws"] for k, group in record["groups"].items()}
    return ({"worse_than_temperature": worse} if any(worse) else {}) | (
        {"draws": draws} if any(draws.values()) else {}
    )


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
    if not all(path.is_file() for path in (files.rows, files.curves, files.facts)):
        return [], [], {}
    facts = read_json(files.facts)
    stay = {
        name: record
        for name, record in facts["calibrators"].items()
        if name not in written and (CONF / "calibrator" / f"{name}.yaml").is_file()
    }
    if other := difference(facts, header):
        if stay:
            raise UsageError(
                f"{files.rows}: its rows of {', '.join(stay)} were made with {other}; give these "
                "results a place of their own (paths.results=…), or delete that file"
            )
        say(f"{files.rows}: replaces results made with {other}")
    rows, curves = read_table(files.rows, ROW_COLUMNS), read_table(files.curves, CURVE_COLUMNS)
    return (
        [rows[rows["calibrator"].isin(list(stay))]],
        [curves[curves["calibrator"].isin(list(stay))]],
        stay,
    )
