"""The scores of a benchmark as three text files for people and for git: names, columns, format."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.harness.artifacts import CorruptFile, json_text, read_json, update_text, write_text
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
        return self._named(".csv")

    @property
    def curves(self) -> Path:
        """The eCDFs of the sampled users and their noise floors (CURVE_COLUMNS)."""
        return self._named(".ecdf.csv")

    @property
    def facts(self) -> Path:
        """Settings, details of the logits, and the worst intervals of each calibrator, as JSON."""
        return self._named(".json")

    def _named(self, end: str) -> Path:
        return self.results / "scores" / f"{self.stem}{end}"


def rounded(value: Any) -> Any:
    """`value` with every float in it to DIGITS significant digits, NaN as None."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(entry) for entry in value]
    if isinstance(value, (float, np.floating)):
        return None if np.isnan(value) else float(f"{value:.{DIGITS}g}")
    return value


def without_folders(value: Any) -> Any:
    """`value` with file names in the place of absolute paths, which differ between machines."""
    if isinstance(value, dict):
        return {key: without_folders(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [without_folders(entry) for entry in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return value


def score_files(settings: Settings) -> ScoreFiles:
    """The files of a benchmark's scores."""
    results, name = settings.paths.results, settings.benchmark.name
    return ScoreFiles(results, name, settings.evaluation.name)


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


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A table that `write_files` wrote.

    Raises:
        CorruptFile: it is damaged or of another version; one line.
    """
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


def write_files(
    files: ScoreFiles,
    facts: Mapping[str, Any],
    rows: Sequence[pd.DataFrame],
    curves: Sequence[pd.DataFrame],
) -> list[Path]:
    """Write the three files of a benchmark, sorted, and return their paths."""
    content = {**facts, "calibrators": dict(sorted(facts["calibrators"].items()))}
    return [
        update_text(files.rows, _sorted_csv(rows, ("calibrator", "group", "split"))),
        update_text(files.curves, _sorted_csv(curves, ("calibrator", "group"))),
        update_text(files.facts, _json(rounded(content))),
    ]


def _json(content: Mapping[str, Any]) -> str:
    """Indented JSON with each list of numbers on one line, because diagrams have many numbers."""
    return re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match[0].split()), json_text(content))


def _sorted_csv(parts: Sequence[pd.DataFrame], by: Sequence[str]) -> str:
    """The rows sorted by `by`, those of all splits last; metrics keep their order."""
    table = pd.concat(parts, ignore_index=True)
    return csv_text(table.sort_values(list(by), key=_place, kind="stable"))


def _place(column: pd.Series) -> pd.Series:
    if column.name != "split":
        return column
    return column.map(lambda split: math.inf if split == ALL_SPLITS else float(split))


def csv_text(table: pd.DataFrame) -> str:
    """A table as the text of a CSV, numbers to DIGITS significant digits."""
    text: str = table.to_csv(index=False, lineterminator="\n", float_format=f"%.{DIGITS}g")
    return text


def write_all_scores(results: Path) -> list[Path]:
    """Write scores/all.csv: of every benchmark in scores/ the rows of all splits together.

    It is the same file after the report of any suite. Returns its path, if there are any scores.
    """
    tables = []
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        if facts["evaluation"]["name"] == DEFAULT_EVALUATION:
            rows = read_table(ScoreFiles(results, facts["benchmark"]).rows, ROW_COLUMNS)
            rows = rows[rows["split"] == ALL_SPLITS].drop(columns="split")
            rows.insert(0, "benchmark", facts["benchmark"])
            tables.append(rows)
    if not tables:
        return []
    return [write_text(results / "scores" / "all.csv", csv_text(pd.concat(tables)))]
