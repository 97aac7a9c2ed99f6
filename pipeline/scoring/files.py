"""The scores of a benchmark as three text files for people and for git: written and read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.harness.artifacts import CorruptFile, json_text, read_json, write_text
from pipeline.harness.settings import Settings

DEFAULT_EVALUATION = "default"
"""The evaluation whose name is not part of file names."""
ALL_SPLITS = "all"
"""The value of the column `split` in rows of all splits together."""
DIGITS = 7
"""Significant digits of every number. Processors differ in the last bits."""
ROW_COLUMNS = (
    *("calibrator", "group", "split", "metric", "value"),
    *("floor_mean", "floor_q95", "p_value", "half_width"),
    *("worst_utility", "worst_low", "worst_high", "worst_sign"),
    *("estimate", "lower", "upper", "upper_finite"),
    *("n_test", "zero_likelihood"),
)
"""Of `<benchmark>.csv`; results/README.md says what each one is."""
CURVE_COLUMNS = ("calibrator", "group", "family", "level", "error", "floor_low", "floor_high")
"""Of `<benchmark>.ecdf.csv`."""
TEXT = ("calibrator", "group", "split", "metric", "family")
"""Columns that are text, all others are numbers; an empty group means all points."""
ON_REQUEST = ("u_tce", "u_comb")
"""Metrics that other columns imply. A table has them only if its benchmark names them."""


@dataclass(frozen=True)
class ScoreFiles:
    """The files of one benchmark under one evaluation, below the folder of results."""

    results: Path
    benchmark: str
    evaluation: str = DEFAULT_EVALUATION

    @property
    def stem(self) -> str:
        """`cifar10_resnet`, or for a named evaluation `cifar10_resnet-paper_batches`."""
        is_default = self.evaluation == DEFAULT_EVALUATION
        return self.benchmark if is_default else f"{self.benchmark}-{self.evaluation}"

    @property
    def rows(self) -> Path:
        """A row per calibrator, split and metric (ROW_COLUMNS)."""
        return self.results / "scores" / f"{self.stem}.csv"

    @property
    def curves(self) -> Path:
        """The eCDFs of the sampled users and their noise floors (CURVE_COLUMNS)."""
        return self.rows.with_suffix(".ecdf.csv")

    @property
    def facts(self) -> Path:
        """Settings, details of the logits, and the worst intervals of each calibrator, as JSON."""
        return self.rows.with_suffix(".json")


def score_files(settings: Settings) -> ScoreFiles:
    """The files of a benchmark's scores."""
    results, name = settings.paths.results, settings.benchmark.name
    return ScoreFiles(results, name, settings.evaluation.name)


@dataclass(frozen=True)
class Scores:
    """What the files say of one benchmark, of all points or of one `group` of them."""

    benchmark: str
    rows: pd.DataFrame
    curves: pd.DataFrame
    facts: Mapping[str, Any]
    group: str = ""

    @classmethod
    def read(cls, files: ScoreFiles) -> Scores | None:
        """The scores of all points; None where they have not been written.

        Raises:
            CorruptFile: a file is damaged or of another version.
        """
        if not files.facts.is_file():
            return None
        rows, curves = _read(files.rows, ROW_COLUMNS), _read(files.curves, CURVE_COLUMNS)
        return cls(files.benchmark, rows, curves, read_json(files.facts))

    @property
    def methods(self) -> list[str]:
        """The calibrators that were scored."""
        return list(self.own_rows()["calibrator"].unique())

    @property
    def splits(self) -> int:
        """The number of splits behind each mean."""
        return int(self.facts["splits"]["count"])

    @property
    def test_share(self) -> float:
        """Test points of a split over all points."""
        if self.group:
            return 1.0 - float(self.facts["splits"]["calibration_fraction"])
        return float(self.rows["n_test"].iloc[0]) / float(self.facts["logits"]["n"])

    @property
    def groups(self) -> dict[str, int]:
        """The groups of points and how many points each has; most benchmarks have none."""
        return dict(self.facts["logits"].get("groups", {}))

    def of_group(self, name: str) -> Scores:
        """The scores of one group of points; without rows where it was too small."""
        return replace(self, group=name)

    def own_rows(self) -> pd.DataFrame:
        """The rows of these points."""
        return self.rows[self.rows["group"] == self.group]

    def own_curves(self) -> pd.DataFrame:
        """The eCDF levels of these points."""
        return self.curves[self.curves["group"] == self.group]

    def worst(self, method: str) -> Mapping[str, Mapping[str, Any]]:
        """The worst intervals of one calibrator, by metric."""
        record: Mapping[str, Any] = self.facts["calibrators"].get(method, {})
        where = record.get("groups", {}).get(self.group) if self.group else record.get("worst")
        return where or {}

    def draws(self, method: str) -> Mapping[str, Sequence[float]]:
        """By metric the mean over few splits under resampled points (tidy.draws_of)."""
        draws: Mapping[str, Any] = self.facts["calibrators"].get(method, {}).get("draws", {})
        return draws.get(self.group, {})


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    numbers = [name for name in columns if name not in TEXT]
    try:
        table = pd.read_csv(
            path,
            dtype=dict.fromkeys(TEXT, str),
            keep_default_na=False,  # a group may be called NA
            na_values={name: [""] for name in numbers},
        )
        return table[list(columns)].astype(dict.fromkeys(numbers, np.float64))
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise CorruptFile(f"{path}: cannot be read ({reason}); evaluate again") from error


def columns_of(settings: Settings) -> tuple[str, ...]:
    """The metrics of a benchmark's tables in order, those of own utilities last.

    A benchmark that names none has all of metrics/registry.py except ON_REQUEST.

    Raises:
        InputError: a key is no metric; the message has the nearest one.
    """
    from metrics.registry import METRICS, check_keys  # with torch, which not every command needs

    benchmark, own = settings.benchmark, settings.evaluation.own
    chosen = benchmark.metrics
    if chosen is None:
        chosen = [key for key in METRICS if key not in ON_REQUEST]
    check_keys(chosen, own, f"benchmark={benchmark.name}: metrics")
    return tuple(dict.fromkeys([*chosen, *own]))


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to everything in its dictionaries and lists."""
    if isinstance(value, dict):
        return {key: _changed(entry, change) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_changed(entry, change) for entry in value]
    return change(value)


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """`value` with every float in it to so many significant digits, NaN and infinity as None."""

    def change(one: Any) -> Any:
        if not isinstance(one, (float, np.floating)):
            return one
        return float(f"{one:.{digits}g}") if math.isfinite(one) else None

    return _changed(value, change)


def without_folders(value: Any) -> Any:
    """`value` with file names in the place of absolute paths, which differ between machines."""

    def change(one: Any) -> Any:
        return Path(one).name if isinstance(one, str) and Path(one).is_absolute() else one

    return _changed(value, change)


def difference(made: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first setting of evaluation, splits or logits that differs, in words; "" if none does."""
    for group, names in (("splits", None), ("evaluation", None), ("logits", ("sha256",))):
        for name in names or sorted({*made[group], *wanted[group]}):
            value, other = made[group].get(name), wanted[group].get(name)
            if value != other:
                return f"{group}.{name}={value}, not {other}"
    return ""


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a table with these columns; missing values become empty text or NaN."""
    kinds = {name: str if name in TEXT else np.float64 for name in columns}
    return pd.DataFrame(list(rows), columns=list(columns)).astype(kinds)


def write_files(
    files: ScoreFiles,
    facts: Mapping[str, Any],
    rows: Sequence[pd.DataFrame],
    curves: Sequence[pd.DataFrame],
) -> list[Path]:
    """Write the three files of a benchmark and return their paths.

    Rows and calibrators are sorted, metrics keep their order, and rows of all splits come last.
    """
    text = json_text(rounded({**facts, "calibrators": dict(sorted(facts["calibrators"].items()))}))
    # Diagrams have many numbers, so each list of numbers is on one line.
    text = re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match[0].split()), text)
    return [
        write_text(files.rows, _sorted(rows, "calibrator", "group", "split")),
        write_text(files.curves, _sorted(curves, "calibrator", "group")),
        write_text(files.facts, text),
    ]


def _sorted(parts: Sequence[pd.DataFrame], *by: str) -> str:
    table = pd.concat(parts, ignore_index=True)
    return csv_text(table.sort_values(list(by), key=_place, kind="stable"))


def _place(column: pd.Series) -> pd.Series:
    return column.replace(ALL_SPLITS, "inf").astype(float) if column.name == "split" else column


def csv_text(table: pd.DataFrame) -> str:
    """A table as the text of a CSV, numbers to DIGITS significant digits."""
    text: str = table.to_csv(index=False, lineterminator="\n", float_format=f"%.{DIGITS}g")
    return text


def write_all_scores(results: Path) -> list[Path]:
    """Write scores/all.csv: of every benchmark in scores/ the rows of all splits together.

    It is the same file after the report of any suite. Returns its path, if there are any scores.
    """
    tables = {}
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        if facts["evaluation"]["name"] == DEFAULT_EVALUATION:
            rows = _read(ScoreFiles(results, facts["benchmark"]).rows, ROW_COLUMNS)
            rows = rows[rows["split"] == ALL_SPLITS].drop(columns="split")
            tables[facts["benchmark"]] = rows
    if not tables:
        return []
    table = pd.concat(tables, names=["benchmark", None]).reset_index("benchmark")
    return [write_text(results / "scores" / "all.csv", csv_text(table))]
