"""The CIFAR suite on the real logits of the public checkpoints, taken from a folder."""

import pytest

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.cache import record_of
from pipeline.logits import run_logits
from pipeline.scoring.decisions import decide
from pipeline.scoring.files import Scores, score_files
from tests.known_levels import KNOWN, SCALES
from tests.pipeline.conftest import request_of

EXACT = ("cifar10_resnet", "cifar10_resnet44", "cifar100_resnet")
"""Accuracies that are the published ones in all digits."""
BENCHMARKS = (*EXACT, "cifar10_repvgg", "cifar100_repvgg")


@pytest.fixture(scope="module")
def measured(shared_dir, tmp_path_factory):
    """Records, and the decisions on the uncalibrated classifiers over 4 splits."""
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
    records = {name: record_of(folder / f"data/logits/{name}.npz") for name in BENCHMARKS}
    units = {unit.benchmark: unit for unit in request.units()}
    scores = {name: Scores.read(score_files(unit.settings)) for name, unit in units.items()}
    return records, {name: decide(one, ["uncalibrated"]) for name, one in scores.items()}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_accuracy_is_the_published_one_and_the_rows_agree_with_the_reference(measured, benchmark):
    details = measured[0][benchmark]["details"]
    assert details["n"] == 10_000
    away = 0.005 if benchmark in EXACT else 0.35
    assert details["accuracy"] == pytest.approx(details["published_accuracy"], abs=away)
    assert "chenyaofo" in details["origin"]["readme_says"]
    decisions = measured[1][benchmark]
    (settings,) = request_of(f"benchmark={benchmark}").benchmark_settings()
    known = KNOWN[settings.benchmark.precomputed]
    for (metric, scale), expected in zip(SCALES.items(), known, strict=True):
        row = decisions.rows["uncalibrated", metric]
        # Other seeds and fewer splits, and references rounded to one digit.
        tolerance = 2.5 * row.two_se * scale + 0.06
        assert row.mean * scale == pytest.approx(expected, abs=tolerance), metric
