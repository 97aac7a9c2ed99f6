"""The CIFAR suite on the real logits of the public checkpoints, taken from a folder."""

import pytest

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.artifacts import read_json
from pipeline.harness.receipts import two_standard_errors
from pipeline.logits import run_logits
from tests.pipeline.conftest import request_of

REFERENCE = {  # means over 10 seeded splits, computed elsewhere in float64; the seeds differ
    "cifar10_repvgg": (94.6, 9.16, 34.7, 36.4, 97, 36.9, 24.5),
    "cifar10_resnet": (94.3, 9.41, 32.6, 37.9, 96, 37.9, 25.3),
    "cifar10_resnet44": (93.9, 10.47, 39.8, 39.5, 117, 40.4, 26.9),
    "cifar100_repvgg": (77.6, 32.20, 15.3, 55.8, 45, 49.7, 31.7),
    "cifar100_resnet": (72.9, 41.50, 14.5, 141, 55, 141, 115),
}
SCALES = {
    "accuracy": 1e2, "brier": 1e2, "cwe_bin": 1e4, "tce_bin": 1e3, "u_cwe": 1e4, "u_topk": 1e3,
    "u_dcg": 1e3,
}  # fmt: skip
PUBLISHED = {"cifar10_resnet": 94.37, "cifar10_resnet44": 94.01, "cifar100_resnet": 72.63}


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
    sidecars = {name: read_json(folder / f"data/logits/{name}.json") for name in REFERENCE}
    metrics = {name: [] for name in REFERENCE}
    for unit in request.units():
        metrics[unit.benchmark].append(read_json(unit.files.metrics)["metrics"])
    return sidecars, metrics


@pytest.mark.parametrize("benchmark", REFERENCE)
def test_accuracy_is_the_published_one(receipts, benchmark):
    sidecar = receipts[0][benchmark]
    assert sidecar["n"] == 10_000
    assert sidecar["accuracy"] == pytest.approx(sidecar["published_accuracy"], abs=0.35)
    if benchmark in PUBLISHED:
        assert sidecar["accuracy"] == pytest.approx(PUBLISHED[benchmark], abs=0.005)
    assert "chenyaofo" in sidecar["origin"]["readme_says"]


@pytest.mark.parametrize("benchmark", REFERENCE)
def test_uncalibrated_rows_agree_with_the_reference(receipts, benchmark):
    measured = receipts[1][benchmark]
    for (metric, scale), expected in zip(SCALES.items(), REFERENCE[benchmark], strict=True):
        values = [split[metric] for split in measured]
        # Other seeds and fewer splits, and references rounded to one digit.
        tolerance = 2.5 * two_standard_errors(values) * scale + 0.06
        assert sum(values) / len(values) * scale == pytest.approx(expected, abs=tolerance), metric
