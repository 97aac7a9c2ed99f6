"""suite=paper_closest through all five stages, with the documented commands, on small stand-ins."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.paper import standins
from utility_calibration.pipeline.harness.parameters import CONF

RESNET, VIT = "resnet50.a1_in1k", "vit_base_patch16_224.augreg2_in21k_ft_in1k"
SMALL = [
    "suite.calibrators=[temperature_brier,vector_brier]", "splits.count=2",
    "evaluation.utilities=20",
    "evaluation.floor_repetitions=4", "evaluation.bootstrap_repetitions=4",
    "dynamics.iterations=1", "dynamics.utilities=8", "dynamics.snapshots=[0]", "jobs=1",
]  # fmt: skip
PART = {
    "imagenet_resnet": ["benchmark.source.expected_images=null"],
    "imagenet_vit": ["benchmark.source.expected_images=null"],
    "yahoo": ["benchmark.source.expected_rows=null"],
}


@pytest.mark.slow
def test_the_whole_paper_on_stand_ins(tmp_path: Path) -> None:
    places = {
        "PRECOMPUTED": standins.cifar(tmp_path / "cifar"),
        "IMAGENET": standins.images(tmp_path / "images", 60),
        "CHECKPOINTS": standins.weights(tmp_path / "weights", RESNET, VIT),
        "WORD_VECTORS": standins.vectors(tmp_path / "vectors.txt"),
        "YAHOO_MODEL": standins.yahoo_model(tmp_path / "distilbert"),
        "YAHOO_DATA": standins.yahoo_data(tmp_path / "test-0.parquet", 200),
    }
    folders = [f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / 'results'}"]

    def stage(name: str, *more: str, **variables: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "utility_calibration", name, *more, *folders, *SMALL],
            cwd=CONF.parent, capture_output=True, text=True, check=False,
            env=os.environ | {key: str(value) for key, value in variables.items()},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for benchmark, options in PART.items():
        stage("logits", f"benchmark={benchmark}", *options, **places)
    cifar = "suite.benchmarks=[cifar10_repvgg,cifar10_resnet44,cifar100_repvgg,cifar100_resnet]"
    small = "paths.check_precomputed=false"  # stand-ins have fewer points than the benchmark
    stage("logits", "suite=paper_closest", cifar, small, **places)
    results = tmp_path / "results"
    yahoo = tmp_path / "data" / "logits" / "yahoo.npz"
    away = yahoo.rename(tmp_path / "yahoo.npz")
    assert "yahoo" in stage("fit", "suite=paper_closest")  # it says what it leaves out
    away.rename(yahoo)
    for name in ("fit", "evaluate", "dynamics", "report"):  # they need no place and no option
        stage(name, "suite=paper_closest")
    assert len(list((results / "scores").glob("*.ecdf.csv"))) == 7
    assert len(list((results / "figures").glob("ecdf_*.png"))) == 7
    for benchmark in (*PART, "cifar10_resnet44", "cifar100_repvgg"):
        assert "Temp. Scaling" in (results / f"tables/{benchmark}-paper_batches.md").read_text()
    assert "u_w2v" in (results / "scores/imagenet_vit-paper_batches.csv").read_text()
    cells = pd.read_csv(results / "tables" / "comparison.csv")
    counted = set(cells.loc[cells["preset"], "benchmark"])
    assert {"imagenet_resnet", "imagenet_vit", "yahoo"} <= counted
    assert (results / "tables" / "comparison_paired.md").is_file()
    claims = pd.read_csv(results / "tables" / "claims.csv")
    assert claims["verdict"].notna().all()
    assert claims["where"].str.contains("dynamics").sum() == 2
