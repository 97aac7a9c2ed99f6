"""The scores of a benchmark as three text files for people and for git: written and read."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from utility_calibration.metrics.registry import METRICS, check_keys

from ..harness.artifacts import CorruptFile, json_text, read_json, write_text
from ..harness.settings import DEFAULT_EVALUATION, Settings, suffix_of

ALL_SPLITS = "all"  # the value of the column `split` in rows of all splits together
DIGITS = 7  # Significant digits of every number. Processors differ in the last bits.
ROW_COLUMNS = (
    *("calibrator", "group", "split", "metric", "value"),
    *("floor_mean", "floor_q95", "p_value", "half_width"),
    *("worst_utility", "worst_low", "worst_high", "worst_sign"),
    *("gain", "threshold", "act_from"),
    *("estimate", "lower", "upper", "upper_finite"),
    *("n_test", "zero_likelihood"),
)
"""Of `<benchmark>.csv`; results/README.md says what each one is."""
CURVE_COLUMNS = ("calibrator", "group", "family", "level", "error", "floor_low", "floor_high")
"""Of `<benchmark>.ecdf.csv`."""
TEXT = ("calibrator", "group", "split", "metric", "family")
"""Columns that are text, all others are numbers; an empty group means all points."""
ON_REQUEST = ("u_tce", "u_comb", "two_bin")
"""Metrics that are no column of a table unless a benchmark names them."""


class ScoreFiles(NamedTuple):
    """The files of one benchmark under one evaluation."""

    benchmark: str
    stem: str
    """Their name without an ending."""
    rows: Path
    """A row per calibrator, split and metric (ROW_COLUMNS)."""
    curves: Path
    """The eCDFs of the sampled users and their noise floors (CURVE_COLUMNS)."""
    facts: Path
    """Settings, details of the logits, and the worst intervals of each calibrator, as JSON."""

    @classmethod
    def below(cls, results: Path, benchmark: str, evaluation: str = DEFAULT_EVALUATION) -> Self:
        """The files in a folder of results; the default evaluation has no part in their names."""
        stem = f"{benchmark}{suffix_of(evaluation)}"
        rows = results / "scores" / f"{stem}.csv"
        facts = rows.with_name(f"{stem}.json")
        return cls(benchmark, stem, rows, rows.with_name(f"{stem}.ecdf.csv"), facts)


def score_files(settings: Settings) -> ScoreFiles:
    """The files of a benchmark's scores."""
    results, name = settings.paths.results, settings.benchmark.name
    return ScoreFiles.below(results, name, settings.evaluation.name)


@dataclass(frozen=True)
class Scores:
    """What the files say of one benchmark, of all points or of one `group` of them."""

    benchmark: str
    rows: pd.DataFrame
    curves: pd.DataFrame
    facts: Mapping[str, Any]
    group: str = ""

    @classmethod
    def read(cls, files: ScoreFiles) -> Self | None:
        """Of all points; None before they are written, CorruptFile where one is damaged."""
        if not files.facts.is_file():
            return None
        rows, curves = _read(files.rows, ROW_COLUMNS), _read(files.curves, CURVE_COLUMNS)
        return cls(files.benchmark, rows, curves, read_json(files.facts))

    @property
    def methods(self) -> list[str]:
        """The calibrators that were scored."""
        return list(self.own_rows()["calibrator"].unique())

    @property
    def test_share(self) -> float:
        """Test points of a split over all points."""
        if self.group:
            return 1.0 - float(self.facts["splits"]["calibration_fraction"])
        return float(self.rows["n_test"].iloc[0]) / float(self.facts["logits"]["n"])

    def of_group(self, name: str) -> Self:
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
        record = self.facts["calibrators"].get(method, {})
        by_group = {"": record.get("worst", {}), **record.get("groups", {})}
        return dict(by_group.get(self.group, {}))

    def draws(self, method: str) -> Mapping[str, Sequence[float]]:
        """By metric the mean over few splits under resampled points (score_rows.draws_of)."""
        draws = self.facts["calibrators"].get(method, {}).get("draws", {})
        return dict(draws.get(self.group, {}))

    def together(self, method: str) -> Mapping[str, float]:
        """By metric the p-value that holds over a family of errors (families.py), if it has one."""
        together = self.facts["calibrators"].get(method, {}).get("together", {})
        return dict(together.get(self.group, {}))


def _kinds(columns: Sequence[str]) -> dict[str, type]:
    """The type of each column."""
    kinds: dict[str, type] = dict.fromkeys(columns, np.float64)
    return kinds | {name: str for name in columns if name in TEXT}


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    # Only in a column of numbers is a gap a missing value: a group may be called NA.
    blank = {name: [""] for name in columns if name not in TEXT}
    try:
        table = pd.read_csv(path, dtype=_kinds(columns), keep_default_na=False, na_values=blank)
        return table[list(columns)]
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        fix = "delete it and evaluate again"
        raise CorruptFile(f"{path}: cannot be read ({reason}); {fix}") from error


def columns_of(settings: Settings) -> tuple[str, ...]:
    """The metrics of a benchmark's tables, or all but ON_REQUEST; own utilities come last."""
    benchmark, own_utilities = settings.benchmark, settings.evaluation.own
    chosen = benchmark.metrics
    if chosen is None:
        chosen = [key for key in METRICS if key not in ON_REQUEST]
    check_keys(chosen, own_utilities, f"benchmark={benchmark.name}: metrics")
    return tuple(dict.fromkeys([*chosen, *own_utilities]))


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """`value` with every float in it to so many significant digits, NaN and infinity as None."""
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return _in_each(value, partial(rounded, digits=digits))


def without_folders(value: Any) -> Any:
    """`value` with file names in the place of absolute paths, which differ between machines."""
    if isinstance(value, str):
        return Path(value).name if Path(value).is_absolute() else value
    return _in_each(value, without_folders)


def _in_each(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with the entries of a dict, list or tuple changed."""
    if isinstance(value, dict):
        return {key: change(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [change(entry) for entry in value]
    return value


def write_files(
    files: ScoreFiles, facts: Mapping[str, Any], rows: Sequence[Any], curves: Sequence[Any]
) -> list[Path]:
    """Write the three files of a benchmark from lists of dicts, columns or tables.

    Rows and calibrators are sorted, metrics keep their order, and rows of all splits come last.
    """
    table = _sorted_table(rows, ROW_COLUMNS, ["calibrator", "group", "split"])
    curve_table = _sorted_table(curves, CURVE_COLUMNS, ["calibrator", "group"])
    calibrators = dict(sorted(facts["calibrators"].items()))
    text = json_text(rounded({**facts, "calibrators": calibrators}))
    # Diagrams have many numbers, so each list of numbers is on one line.
    text = re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match[0].split()), text)
    return [
        write_text(files.rows, csv_text(table)),
        write_text(files.curves, csv_text(curve_table)),
        write_text(files.facts, text),
    ]


def _sorted_table(parts: Sequence[Any], columns: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
    """One table from lists of dicts, columns or tables, in the order of some columns."""
    kinds = _kinds(columns)
    tables = [pd.DataFrame(part, columns=list(columns)).astype(kinds) for part in parts]

    def place(column: pd.Series) -> pd.Series:
        # Numbers of splits are text beside ALL_SPLITS, which comes last.
        return column.replace(ALL_SPLITS, "inf").astype(float) if column.name == "split" else column

    return pd.concat(tables, ignore_index=True).sort_values(list(by), key=place, kind="stable")


def csv_text(table: pd.DataFrame) -> str:
    """A table as the text of a CSV, numbers to DIGITS significant digits."""
    text: str = table.to_csv(index=False, lineterminator="\n", float_format=f"%.{DIGITS}g")
    return text


def write_all_scores(results: Path) -> list[Path]:
    """Write scores/all.csv, if there are scores: of every benchmark the rows of all splits."""
    tables = {}
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        if facts["evaluation"]["name"] == DEFAULT_EVALUATION:
            rows = _read(ScoreFiles.below(results, facts["benchmark"]).rows, ROW_COLUMNS)
            rows = rows[rows["split"] == ALL_SPLITS].drop(columns="split")
            tables[facts["benchmark"]] = rows
    if not tables:
        return []
    table = pd.concat(tables, names=["benchmark", None]).reset_index("benchmark")
    return [write_text(results / "scores" / "all.csv", csv_text(table))]
