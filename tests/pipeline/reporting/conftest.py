"""Runs shaped as real ones, with seeded numbers around the paper's printed values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from metrics import METRICS
from pipeline.harness.artifacts import write_json, write_npz, write_record
from pipeline.reporting.comparison import printed_values
from pipeline.reporting.names import METHODS

ALL_METRICS = [key for key in METRICS if key != "u_w2v"]
SPLITS = 4
UTILITIES = 120
FIT = {"config": {"_target_": "calibrators.Some", "seed": 0}, "parameters_sha256": "0"}
WriteRuns = Callable[..., Path]


def _metrics(table: str, method: str, rng: np.random.Generator) -> dict[str, float]:
    cells = printed_values()
    cells = cells[(cells["table"] == table) & (cells["method"] == method.split("_")[0])]
    noise = rng.normal(size=len(cells)) * cells["printed_two_se"] / 2 * np.sqrt(10)
    values = dict(zip(cells["metric"], cells["printed"] + noise, strict=True))
    return {key: values.get(key, 0.05) for key in ALL_METRICS}


def _ecdf(level: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    arrays = {}
    for family in ("linear", "rank"):
        arrays[family] = level * np.exp(0.4 * rng.normal(size=UTILITIES))
        floor = np.sort(0.004 * np.exp(0.4 * rng.normal(size=UTILITIES)))
        for name, factor in (("mean", 1.0), ("q05", 0.7), ("q95", 1.4)):
            arrays[f"{family}_floor_{name}"] = floor * factor
    for key in (key for key in ALL_METRICS if METRICS[key].has_floor):
        arrays[f"floor_{key}"] = 0.01 * np.exp(0.2 * rng.normal(size=40))
    return arrays


@pytest.fixture
def write_runs(tmp_path: Path) -> WriteRuns:
    """`write_runs(benchmark, table=..., methods=..., shift=...)` -> the runs folder."""

    def write(
        benchmark: str = "cifar10_repvgg",
        table: str = "cifar10_repvgg",
        methods: tuple[str, ...] = tuple(METHODS),
        splits: int = SPLITS,
        shift: float = 0.0,
        suffix: str = "",
    ) -> Path:
        runs = tmp_path / "results" / "runs"
        for place, method in enumerate(methods):
            for split in range(splits):
                rng = np.random.default_rng([place, split])
                values = {k: v * (1 + shift) for k, v in _metrics(table, method, rng).items()}
                folder = runs / benchmark / method / f"split-{split}"
                ecdf = _ecdf(0.05 / (place + 1), rng)
                digest = write_npz(folder / f"ecdf{suffix}.npz", **ecdf)
                record = {
                    "hash": "0",
                    "benchmark": benchmark,
                    "calibrator": method,
                    "split": split,
                    "n": 10_000,
                    "n_test": 3000,
                    "metrics": values,
                    "noise_floor": {},
                    "worst": {},
                    "certificates": {},
                    "zero_likelihood": 0,
                    "parameters_sha256": "0",
                    "ecdf_sha256": digest,
                }
                write_record(folder / f"metrics{suffix}.json", record)
                write_record(folder / "fit.json", FIT | {"calibrator": method})
                write_json(folder / "run-fit.json", {"versions": {"torch": "2.13.0"}})
        return runs

    return write
