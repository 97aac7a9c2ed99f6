"""Read what the evaluate stage wrote and summarise it over splits: mean, two standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.harness.artifacts import CorruptFile, read_npz, read_record
from pipeline.harness.receipts import two_standard_errors
from pipeline.reporting.names import ordered

SUMMARY_COLUMNS = (
    "benchmark",
    "method",
    "metric",
    "mean",
    "two_se",
    "splits",
    "floor_mean",
    "floor_q95",
)


DEFAULT_EVALUATION = "default"
UnitKey = tuple[str, str, int]
"""Benchmark, method, split."""


class MissingUnits(RuntimeError):
    """Results that the report needs and that nobody has computed yet, and the command for them."""


@dataclass(frozen=True)
class UnitResult:
    """One evaluated unit: benchmark x method x split.

    `metrics[key]` is the value on the test split, `noise_floor[key]` the `mean` and `q95` of the
    same quantity with labels redrawn from the method's own probabilities, `ecdf` the arrays of
    `ecdf.npz` (errors of the sampled utilities and the sorted curves of their noise floor).
    """

    benchmark: str
    method: str
    split: int
    metrics: Mapping[str, float]
    noise_floor: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ecdf: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True)
class Runs:
    """Where evaluated units lie, and which evaluation of them to read.

    An evaluation with a name of its own (`evaluation=paper_batches`) keeps its files beside those
    of the default one: `metrics-<name>.json`, `ecdf-<name>.npz`.
    """

    folder: Path
    evaluation: str = DEFAULT_EVALUATION

    @property
    def is_default(self) -> bool:
        """Whether this is the evaluation without a name in its files."""
        return self.evaluation == DEFAULT_EVALUATION

    def file(self, unit: UnitKey, kind: str) -> Path:
        """`metrics.json` or `ecdf.npz` (`kind`) of one unit."""
        stem, _, suffix = kind.partition(".")
        name = kind if self.is_default else f"{stem}-{self.evaluation}.{suffix}"
        benchmark, method, split = unit
        return self.folder / benchmark / method / f"split-{split}" / name

    def has(self, unit: UnitKey) -> bool:
        """Whether the unit's evaluation is complete, and of the parameters that lie there."""
        if not all(self.file(unit, kind).is_file() for kind in ("metrics.json", "ecdf.npz")):
            return False
        record = read_record(self.file(unit, "metrics.json"))
        fit = read_record(self.file(unit, "metrics.json").with_name("fit.json"))
        if record is None or fit is None:
            return False
        return bool(record["parameters_sha256"] == fit["parameters_sha256"])

    def read(self, unit: UnitKey) -> UnitResult:
        """One unit's results. Raises CorruptFile, in one line, for a damaged or edited file."""
        path = self.file(unit, "metrics.json")
        record = read_record(path)
        if record is None:
            raise CorruptFile(f"{path}: damaged, edited or of an older version; evaluate it again")
        return UnitResult(
            *unit,
            metrics=record["metrics"],
            noise_floor=record.get("noise_floor", {}),
            ecdf=read_npz(self.file(unit, "ecdf.npz")),
        )

    def read_all(
        self, benchmark: str, methods: Iterable[str], splits: Sequence[int]
    ) -> list[UnitResult]:
        """All units of one benchmark, methods in the order given."""
        return [self.read((benchmark, method, k)) for method in methods for k in splits]

    def evaluated_methods(self, benchmark: str, splits: Sequence[int]) -> list[str]:
        """The methods and variants of a benchmark with all splits evaluated, in table order."""
        root = self.folder / benchmark
        names = [path.name for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
        return ordered(n for n in names if all(self.has((benchmark, n, k)) for k in splits))

    def require(self, units: Sequence[UnitKey], command: str) -> None:
        """Raise MissingUnits, in one line, unless all `units` are there; `command` makes them."""
        missing = [unit for unit in units if not self.has(unit)]
        if missing:
            shown = ", ".join(f"{b} {m} split {k}" for b, m, k in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise MissingUnits(
                f"{self.folder}: {len(missing)} of {len(units)} results are missing "
                f"({shown}{more}); make them with: {command}"
            )


def summarise(units: Iterable[UnitResult]) -> pd.DataFrame:
    """Tidy summary over splits: one row per benchmark x method x metric (SUMMARY_COLUMNS).

    `floor_mean` and `floor_q95` are means over splits of the method's noise floor (NaN where a
    unit holds none). Rows keep the order in which benchmarks, methods and metrics first appear.
    """
    groups: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    for unit in units:
        for key, value in unit.metrics.items():
            floor = unit.noise_floor.get(key, {})
            row = (float(value), floor.get("mean", np.nan), floor.get("q95", np.nan))
            groups.setdefault((unit.benchmark, unit.method, key), []).append(row)
    rows = []
    for (benchmark, method, key), values in groups.items():
        table = np.asarray(values, dtype=np.float64)
        mean, floor_mean, floor_q95 = table.mean(axis=0)
        spread = two_standard_errors(table[:, 0])
        rows.append((benchmark, method, key, mean, spread, len(values), floor_mean, floor_q95))
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))
