"""Scores shaped as real ones, with seeded numbers around the paper's printed values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from utility_calibration.metrics import METRICS
from utility_calibration.pipeline.harness.settings import Settings
from utility_calibration.pipeline.harness.units import Request
from utility_calibration.pipeline.reporting.comparison import printed_values
from utility_calibration.pipeline.reporting.names import METHODS
from utility_calibration.pipeline.scoring.decisions import COLUMNS, Decision, Decisions
from utility_calibration.pipeline.scoring.files import (
    ScoreFiles,
    Scores,
    without_folders,
    write_files,
)
from utility_calibration.pipeline.scoring.score_rows import Scored, curves_of, rows_of

ALL_METRICS = [key for key in METRICS if key != "u_w2v"]
SPLITS = 4
UTILITIES = 120
LOGITS = {"n": 10_000, "classes": 10, "accuracy": 94.4, "sha256": "ab" * 32, "source": "test"}
WriteScores = Callable[..., Scores]


def decided(columns: dict[str, dict[str, dict[str, Any]]], **more: Any) -> Decisions:
    """Decisions by metric and method; what is not given is unknown, and no method is worse."""
    rows = {}
    for key, of_methods in columns.items():
        for method, given in of_methods.items():
            numbers = dict.fromkeys(COLUMNS, math.nan) | {"method": method, "metric": key}
            unknown = {"splits": 10, "interval": "corrected", "not_worse": True}
            beyond = given.get("beyond_floor")
            noise = {"beyond_floor": beyond, "within_noise": None if beyond is None else not beyond}
            rows[method, key] = Decision(**{**numbers, **unknown, **noise, **given})
    methods = dict.fromkeys(method for method, _ in rows)
    ordered = {(m, key): rows[m, key] for m in methods for key in columns if (m, key) in rows}
    settings = {"shown": list(columns), "test": "corrected", "splits": 10, "test_points": 3000}
    return Decisions(ordered, **{**settings, **more})


def _metrics(table: str, method: str, rng: np.random.Generator) -> dict[str, float]:
    cells = printed_values()
    cells = cells[(cells["table"] == table) & (cells["method"] == method.split("_")[0])]
    noise = rng.normal(size=len(cells)) * cells["printed_two_se"] / 2 * np.sqrt(10)
    values = dict(zip(cells["metric"], cells["printed"] + noise, strict=True))
    return {key: values.get(key, 0.05) for key in ALL_METRICS}


def arrays_of(level: float, rng: np.random.Generator, keys: Sequence[str]) -> dict[str, Any]:
    """Errors of sampled users around `level`, their floor's curves, and redrawn metrics."""
    arrays = {}
    for family in ("linear", "rank"):
        arrays[family] = level * np.exp(0.4 * rng.normal(size=UTILITIES))
        floor = np.sort(0.004 * np.exp(0.4 * rng.normal(size=UTILITIES)))
        for name, factor in (("mean", 1.0), ("q05", 0.7), ("q95", 1.4)):
            arrays[f"{family}_floor_{name}"] = floor * factor
    for key in (key for key in keys if METRICS[key].has_floor):
        arrays[f"floor_{key}"] = 0.01 * np.exp(0.2 * rng.normal(size=40))
    return arrays


def scored(split: int, metrics: dict[str, float], **more: Any) -> Scored:
    """One evaluated split; `arrays` and entries of its record may be given."""
    arrays = more.pop("arrays", {})
    record = {
        **{key: {} for key in ("noise_floor", "worst", "certificates")},
        "metrics": metrics,
        "zero_likelihood": 0,
        "n_test": 3000,
    }
    return Scored(split, record | more, arrays)


def request_of(
    folder: Path,
    *benchmarks: str,
    suite: str = "cifar",
    splits: int = SPLITS,
    extra: Sequence[str] = (),
    methods: Sequence[str] = tuple(METHODS),
) -> Request:
    """A request for benchmarks with their results below `folder`."""
    overrides = (
        f"suite={suite}",
        f"splits.count={splits}",
        f"evaluation.utilities={UTILITIES}",
        f"paths.results={folder / 'results'}",
        f"paths.data={folder / 'data'}",
        *extra,
    )
    return Request(suite, benchmarks, tuple(methods), tuple(range(splits)), overrides)


@cache
def settings_of(benchmark: str, calibrator: str, suite: str, splits: int) -> Settings:
    """The configuration of one unit; composing it takes most of a test's time."""
    methods = (calibrator,)
    request = request_of(Path("folder"), benchmark, suite=suite, splits=splits, methods=methods)
    return replace(request, splits=(0,)).units()[0].settings


def write(files: ScoreFiles, parts: dict[str, list[Scored]], header: dict[str, Any]) -> Scores:
    """Write the files of a benchmark from the splits of each method, and read them."""
    rows = [rows_of(method, own, {}) for method, own in parts.items()]
    write_files(files, header, rows, [curves_of(method, own) for method, own in parts.items()])
    scores = Scores.read(files)
    assert scores is not None
    return scores


def facts_of(benchmark: str, splits: int, worst: Any = None) -> dict[str, Any]:
    """The facts of a benchmark, with the worst intervals of each method."""
    return {
        "benchmark": benchmark,
        "evaluation": {
            "name": "default",
            "utilities": UTILITIES,
            "utility_batch": None,
            "prior": "uniform",
        },
        "splits": {"count": splits, "calibration_fraction": 0.7},
        "logits": LOGITS,
        "calibrators": {m: {"config": {}, "worst": own} for m, own in (worst or {}).items()},
    }


@pytest.fixture
def write_scores(tmp_path: Path) -> WriteScores:
    """`write_scores(benchmark, table, methods, shift=...)` -> the scores as read."""

    def written(
        benchmark: str = "cifar10_repvgg",
        table: str = "cifar10_repvgg",
        methods: Sequence[str] = tuple(METHODS),
        splits: int = SPLITS,
        shift: float = 0.0,
        suite: str = "cifar",
    ) -> Scores:
        settings = {m: settings_of(benchmark, m, suite, splits) for m in methods}
        parts: dict[str, list[Scored]] = {method: [] for method in methods}
        for place, method in enumerate(methods):
            for split in range(splits):
                rng = np.random.default_rng([place, split])
                values = {k: v * (1 + shift) for k, v in _metrics(table, method, rng).items()}
                arrays = arrays_of(0.05 / (place + 1), rng, ALL_METRICS)
                parts[method].append(scored(split, values, arrays=arrays))
        first = settings[methods[0]]
        configs = {m: {"config": without_folders(own.calibrator)} for m, own in settings.items()}
        facts = facts_of(benchmark, splits) | {"calibrators": configs}
        facts |= {"evaluation": asdict(first.evaluation), "splits": asdict(first.splits)}
        return write(ScoreFiles.below(tmp_path / "results", benchmark), parts, facts)

    return written
