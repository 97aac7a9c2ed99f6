"""Read what the evaluate stage wrote and summarise it over splits: means, intervals, floors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from metrics import CalibrationInterval, NoiseFloor
from pipeline.harness.artifacts import CorruptFile, read_npz, read_record
from pipeline.harness.paths import DEFAULT_EVALUATION, UnitFiles, unit_folder
from pipeline.harness.receipts import two_standard_errors
from pipeline.reporting.intervals import (
    SIZE,
    bootstrap_half_width,
    corrected_half_width,
)
from pipeline.reporting.names import ordered
from pipeline.reporting.pooled import read_pooled, write_pooled

SUMMARY_COLUMNS = (
    "benchmark",
    "method",
    "metric",
    "mean",
    "two_se",
    "half_width",
    "interval",
    "half_width_corrected",
    "half_width_bootstrap",
    "splits",
    "floor_mean",
    "floor_q95",
    "p_value",
    "beyond_floor",
    "zero_likelihood",
    "test_points",
    "test_share",
    "values",
)
"""Of `summarise`. two_se: the paper's spread. half_width: of the 95 % `interval`, "bootstrap" where
the points were resampled, else "corrected" (pipeline.reporting.intervals). floor_*, p_value: of the
mean over splits, from the method's own probabilities; beyond_floor: p_value <= 0.05, None where the
metric has no floor. zero_likelihood: points per split whose label had probability 0 (of the NLL).
values: one per split."""
CERTIFICATE_COLUMNS = ("benchmark", "method", "metric", *CalibrationInterval._fields)
"""Of `certificates`: means over splits of bounds on the true UC, each of 95 % confidence."""


NEEDED = (
    *("parameters_sha256", "ecdf_sha256", "n", "n_test"),
    *("metrics", "noise_floor", "certificates", "zero_likelihood"),
)
"""What the report takes from a unit's `metrics.json`."""
Arrays = dict[str, NDArray[np.float64]]
UnitKey = tuple[str, str, int]
"""Benchmark, method, split."""


class MissingUnits(RuntimeError):
    """Results that the report needs and that nobody has computed yet, and the command for them."""


@dataclass(frozen=True)
class UnitResult:
    """One evaluated unit: benchmark x method x split.

    `metrics[key]` is the value on the test split, `noise_floor[key]` the `mean` and `q95` of the
    same quantity with labels redrawn from the method's own probabilities. `ecdf` is the same for
    all splits: means over them of the arrays of `ecdf.npz` (sorted errors of the sampled utilities
    and the curves of their noise floor; under `floor_<key>` and `bootstrap_<key>` each metric with
    redrawn labels and resampled points).
    """

    benchmark: str
    method: str
    split: int
    metrics: Mapping[str, float]
    noise_floor: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ecdf: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    certificates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    zero_likelihood: int = 0
    test_points: int = 0
    test_share: float = 0.3

    @classmethod
    def of(
        cls, key: UnitKey, record: Mapping[str, Any], ecdf: Arrays, test_share: float
    ) -> UnitResult:
        """What the record of an evaluation says of the unit `key`."""
        return cls(
            *key,
            metrics=record["metrics"],
            noise_floor=record["noise_floor"],
            ecdf=ecdf,
            certificates=record["certificates"],
            zero_likelihood=record["zero_likelihood"],
            test_points=record["n_test"],
            test_share=test_share,
        )


@dataclass(frozen=True)
class Runs:
    """The folder where evaluated units lie, and which evaluation of them to read."""

    folder: Path
    evaluation: str = DEFAULT_EVALUATION

    @property
    def is_default(self) -> bool:
        """Whether this is the evaluation without a name in its files."""
        return self.evaluation == DEFAULT_EVALUATION

    def files(self, unit: UnitKey) -> UnitFiles:
        """The files of one unit."""
        return UnitFiles(unit_folder(self.folder, *unit), self.evaluation)

    def has(self, unit: UnitKey) -> bool:
        """Whether the unit's evaluation is complete, and of the parameters that lie there."""
        files = self.files(unit)
        if not (files.scores.path.is_file() or files.pooled.is_file()):
            return False
        record, fit = read_record(files.scores.json), read_record(files.fit.json)
        if record is None or fit is None:
            return False
        whole = _with_all_keys(files.scores.json, record)
        return bool(whole["parameters_sha256"] == fit.get("parameters_sha256"))

    def record(self, unit: UnitKey) -> dict[str, Any]:
        """What `metrics.json` says. Raises CorruptFile, in one line, if it is damaged or edited."""
        path = self.files(unit).scores.json
        record = read_record(path)
        if record is None:
            raise CorruptFile(f"{path}: damaged, edited or of an older version; evaluate it again")
        return _with_all_keys(path, record)

    def read(self, unit: UnitKey, pooled: Arrays | None = None) -> UnitResult:
        """One unit's results, with the arrays that all splits share (`pool`)."""
        record = self.record(unit)
        return UnitResult.of(unit, record, pooled or {}, record["n_test"] / record["n"])

    def read_all(
        self, benchmark: str, methods: Iterable[str], splits: Sequence[int]
    ) -> list[UnitResult]:
        """All units of one benchmark, methods in the order given."""
        pooled = {method: self.pool(benchmark, method, splits) for method in methods}
        return [
            self.read((benchmark, m, k), arrays) for m, arrays in pooled.items() for k in splits
        ]

    def pool(self, benchmark: str, method: str, splits: Sequence[int]) -> Arrays:
        """The means over splits of the arrays in `ecdf.npz`, made where they are not yet there."""
        units = [(benchmark, method, k) for k in splits]
        sources = [str(self.record(unit)["ecdf_sha256"]) for unit in units]
        path = self.files(units[0]).pooled
        known = read_pooled(path, sources)
        if known is not None:
            return known
        return write_pooled(path, [self._arrays(unit) for unit in units], sources)

    def _arrays(self, unit: UnitKey) -> Arrays:
        path = self.files(unit).scores.path
        try:
            return read_npz(path)
        except FileNotFoundError as error:
            raise CorruptFile(f"{path}: absent; evaluate the unit again") from error

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


def _with_all_keys(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """`record` of `path`; `CorruptFile` where it lacks what the report takes from it."""
    absent = [key for key in NEEDED if key not in record]
    if absent:
        raise CorruptFile(
            f"{path}: has no `{absent[0]}`, as of another version; run pipeline.evaluate again"
        )
    return record


def summarise(units: Iterable[UnitResult]) -> pd.DataFrame:
    """Tidy summary over splits: one row per benchmark x method x metric (SUMMARY_COLUMNS).

    Rows keep the order in which benchmarks, methods and metrics first appear.
    """
    groups: dict[tuple[str, str], list[UnitResult]] = {}
    for unit in units:
        groups.setdefault((unit.benchmark, unit.method), []).append(unit)
    rows = []
    for (benchmark, method), splits in groups.items():
        shared = {
            "benchmark": benchmark,
            "method": method,
            "splits": len(splits),
            "test_points": splits[0].test_points,
            "test_share": splits[0].test_share,
        }
        keys = dict.fromkeys(key for unit in splits for key in unit.metrics)
        rows += [{**shared, "metric": key, **_summary(splits, key)} for key in keys]
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))


def _summary(splits: Sequence[UnitResult], key: str) -> dict[str, object]:
    """Mean, spread, intervals and noise floor of one metric of one method."""
    values = [float(unit.metrics[key]) for unit in splits if key in unit.metrics]
    corrected = corrected_half_width(values, splits[0].test_share)
    draws = [unit.ecdf.get(f"bootstrap_{key}", np.empty(0)) for unit in splits]
    bootstrap = bootstrap_half_width(draws) if all(len(one) > 1 for one in draws) else np.nan
    has_bootstrap = bool(np.isfinite(bootstrap))
    zeros = float(np.mean([unit.zero_likelihood for unit in splits]))
    return {
        "mean": float(np.mean(values)),
        "two_se": two_standard_errors(values),
        "half_width": bootstrap if has_bootstrap else corrected,
        "interval": "bootstrap" if has_bootstrap else "corrected",
        "half_width_corrected": corrected,
        "half_width_bootstrap": bootstrap,
        **_floor(splits, key, float(np.mean(values))),
        "zero_likelihood": zeros if key == "nll" else np.nan,
        "values": tuple(values),
    }


def _floor(splits: Sequence[UnitResult], key: str, mean: float) -> dict[str, object]:
    """The floor of the mean over splits: repetition by repetition, as splits share their points."""
    draws = [unit.ecdf.get(f"floor_{key}", np.empty(0)) for unit in splits]
    if all(len(one) for one in draws):
        floor = NoiseFloor.of(np.mean(draws, axis=0), mean)
        return {
            "floor_mean": floor.mean,
            "floor_q95": floor.q95,
            "p_value": floor.p_value,
            "beyond_floor": floor.p_value <= SIZE,
        }
    return {"floor_mean": np.nan, "floor_q95": np.nan, "p_value": np.nan, "beyond_floor": None}


def certificates(units: Iterable[UnitResult]) -> pd.DataFrame:
    """Bounds on the true UC per method and metric, means over splits (CERTIFICATE_COLUMNS).

    Metric "all" is the largest UC over all classes of the scorecard.
    """
    rows = [
        {"benchmark": unit.benchmark, "method": unit.method, "metric": key, **bounds}
        for unit in units
        for key, bounds in unit.certificates.items()
    ]
    table = pd.DataFrame(rows, columns=list(CERTIFICATE_COLUMNS))
    return table.groupby(list(CERTIFICATE_COLUMNS[:3]), sort=False, as_index=False).mean()
