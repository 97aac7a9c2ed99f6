"""paper_seeds: one method on small logits, what is kept, and the counts by table and method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.harness.units import composed
from scripts import paper_seeds

PRESET = list(composed(["preset=paper"]).suite.calibrators)


def cells(seed: int, far: float = 0.0) -> pd.DataFrame:
    """The printed accuracy and Brier score of two tables, the latter `far` standard errors off."""
    rows = [
        (seed, table, variant, metric, 0.9, 0.002, 0.9, 0.002, far if metric == "brier" else 0.0)
        for table in ("cifar10_repvgg", "cifar100_repvgg")
        for variant in ("uncalibrated", "temperature_brier", "temperature")
        for metric in ("accuracy", "brier")
    ]
    return pd.DataFrame(rows, columns=list(paper_seeds.COLUMNS))


def test_counts_are_by_table_for_the_preset_and_by_method_over_all_tables() -> None:
    found = pd.concat([cells(0), cells(1, far=4.0), cells(2)])
    text = paper_seeds.summary_text(found, PRESET)
    tables, methods = text.split("\n\n")[-2:]
    assert "| Seed | cifar10_repvgg (of 4) | cifar100_repvgg (of 4) | All (of 8) |" in tables
    assert "| 0 | 4 | 4 | 8 |" in tables
    assert "| 1 | 2 | 2 | 4 |" in tables
    assert "| Mean of 2 other seeds | 3.0 | 3.0 | 6.0 |" in tables
    assert "| Range | 2 … 4 | 2 … 4 | 4 … 8 |" in tables
    assert "`temperature_brier`" in methods and "Temp. Scaling |" in methods


def test_settings_are_the_presets_with_the_splits_of_the_seed() -> None:
    settings = paper_seeds.settings_of("cifar10_repvgg", "patching_60", 3, "/a folder")
    assert settings["splits"]["seed"] == 3 and settings["seed"] == 0
    assert settings["paths"]["precomputed"] == "/a folder"
    assert settings["evaluation"]["utility_batch"] == 1000
    assert settings["calibrator"]["steps"] == 60


@pytest.fixture
def logits_folder(tmp_path: Path) -> Path:
    """1,000 points for each of the preset's benchmarks."""
    generator = np.random.default_rng(0)
    for benchmark in composed(["preset=paper"]).suite.benchmarks:
        one = composed([f"benchmark={benchmark}"]).benchmark
        logits = 3 * generator.normal(size=(1000, 4)).astype(np.float32)
        labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
        np.savez(tmp_path / f"{one.precomputed}.npz", logits=logits, labels=labels)
    return tmp_path


def test_a_second_run_computes_only_what_is_missing(
    logits_folder: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    plain = paper_seeds.settings_of

    def settings_of(benchmark: str, method: str, seed: int, folder: str):
        settings = plain(benchmark, method, seed, folder)
        settings["paths"] |= {"data": str(tmp_path / "data"), "results": str(tmp_path / "results")}
        settings["splits"]["count"] = 2
        return settings

    monkeypatch.setattr(paper_seeds, "settings_of", settings_of)
    arguments = ["--precomputed", str(logits_folder), "--output", str(tmp_path / "out"), "--jobs=1"]
    paper_seeds.main([*arguments, "--seeds", "0", "--methods", "uncalibrated"])
    first = (tmp_path / "out/paper_seeds.csv").read_text()
    assert first.count("\n") == 1 + 4 * 7 - 1  # CIFAR-100 RepVGG has no U_dcg
    capsys.readouterr()
    paper_seeds.main([*arguments, "--seeds", "0", "1", "--methods", "uncalibrated"])
    assert "seed 0," not in capsys.readouterr().out
    second = (tmp_path / "out/paper_seeds.csv").read_text()
    assert second.startswith(first) and second.count("\n") == 1 + 2 * 27
