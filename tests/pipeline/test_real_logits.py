"""The CIFAR suite on the real logits of the public checkpoints, taken from a folder."""

import pytest

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.artifacts import read_json
from pipeline.harness.receipts import two_standard_errors
from pipeline.logits import run_logits
from tests.known_levels import KNOWN, SCALES
from tests.pipeline.conftest import request_of

EXACT = ("cifar10_resnet", "cifar10_resnet44", "cifar100_resnet")
"""Accuracies that are the published ones in all digits."""
BENCHMARKS = (*EXACT, "cifar10_repvgg", "cifar100_repvgg")


@pytest.fixture(scope="module")
def receipts(shared_dir, tmp_path_factory):
    """Sidecars and metrics, one value per split, of the uncalibrated classifiers over 4 splits."""
    folder = tmp_path_factory.mktemp("cifar")
    request = request_of(
        "suite=cifar", "calibrator=uncalibrated", f"paths.precomputed={shared_dir / 'logits'}",
        f"paths.data={folder / 'data'}", f"paths.results={folder / 'results'}",
        "evaluation.utilities=0", "evaluation.floor_repetitions=0",
        "jobs=1", "splits.count=4",
    )  # fmt: skip
    run_logits(request.benchmark_settings())
    run_fit(request.units())
    run_evaluate(request.units())
    sidecars = {name: read_json(folder / f"data/logits/{name}.json") for name in BENCHMARKS}
    metrics = {name: [] for name in BENCHMARKS}
    for unit in request.units():
        metrics[unit.benchmark].append(read_json(unit.files.scores.json)["metrics"])
    return sidecars, metrics


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_accuracy_is_the_published_one(receipts, benchmark):
    sidecar = receipts[0][benchmark]
    assert sidecar["n"] == 10_000
    away = 0.005 if benchmark in EXACT else 0.35
    assert sidecar["accuracy"] == pytest.approx(sidecar["published_accuracy"], abs=away)
    assert "chenyaofo" in sidecar["origin"]["readme_says"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_uncalibrated_rows_agree_with_the_reference(receipts, benchmark):
    measured = receipts[1][benchmark]
    (settings,) = request_of(f"benchmark={benchmark}").benchmark_settings()
    known = KNOWN[settings["benchmark"]["precomputed"]]
    for (metric, scale), expected in zip(SCALES.items(), known, strict=True):
        values = [split[metric] for split in measured]
        # Other seeds and fewer splits, and references rounded to one digit.
        tolerance = 2.5 * two_standard_errors(values) * scale + 0.06
        assert sum(values) / len(values) * scale == pytest.approx(expected, abs=tolerance), metric
