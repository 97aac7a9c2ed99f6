"""Logits of a benchmark: those of the embedded one, and ready-made ones from paths.precomputed.

At the end the CIFAR suite reads the real logits of the public checkpoints.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from tests.pipeline.conftest import plan_of, request_of, times, write_example
from tests.refusals import fails
from utility_calibration.metrics.errors import InputError, MissingResource
from utility_calibration.pipeline.harness.artifacts import sha256_of
from utility_calibration.pipeline.harness.cache import record_of
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.scoring.points import find_logits
from utility_calibration.pipeline.sources.digits import digits_logits
from utility_calibration.pipeline.sources.source_result import drawn_rows
from utility_calibration.pipeline.tasks import logits_task


@pytest.fixture
def folder(tmp_path):
    write_example(tmp_path / "ready/digits.npz", n=90, classes=10, seed=3)
    (tmp_path / "ready/README.md").write_text("# Title\n\nOutputs of a model.\nMore.\n")
    return tmp_path / "ready"


def requested(request_tiny, **paths):
    """Digits, whose own source needs seconds, in the temporary folders of `tiny`."""
    settings = request_tiny("split=0").units()[0].settings
    benchmark = replace(settings.benchmark, precomputed="digits")
    return replace(settings, benchmark=benchmark, paths=replace(settings.paths, **paths))


def test_they_are_taken_with_their_origin_and_stay_without_the_folder(
    request_tiny, tmp_path, folder
):
    settings = requested(request_tiny, precomputed=folder)
    run_logits(plan_of(settings))
    record = find_logits(settings).details
    assert record["n"] == 90
    assert record["origin"]["file"] == str(folder / "digits.npz")
    assert record["origin"]["sha256"] == sha256_of(folder / "digits.npz")
    assert record["origin"]["readme_says"] == "Outputs of a model."
    cached = tmp_path / "data/logits/tiny.npz"
    before = times(tmp_path / "data")[cached]
    run_logits(plan_of(requested(request_tiny)))
    assert times(tmp_path / "data")[cached] == before


@pytest.mark.parametrize("ready", [True, False])
def test_a_pilot_has_some_rows_until_all_are_asked_for(request_tiny, folder, ready):
    settings = requested(request_tiny, precomputed=folder if ready else None)
    run_logits(plan_of(settings))
    whole = find_logits(settings)
    logits, labels = whole.arrays()["logits"], whole.arrays()["labels"]
    pilot = replace(settings, benchmark=replace(settings.benchmark, rows=30))
    run_logits(plan_of(pilot))
    kept, few = drawn_rows(whole.n, 30), find_logits(pilot)
    assert np.array_equal(few.arrays()["logits"], logits[kept])
    assert np.array_equal(few.arrays()["labels"], labels[kept])
    assert any("30 rows" in warning for warning in few.details["warnings"])
    assert logits_task(pilot).is_up_to_date() and not logits_task(settings).is_up_to_date()
    run_logits(plan_of(settings))
    assert find_logits(settings).n == whole.n


OF_CIFAR = {
    "_target_": "utility_calibration.pipeline.sources.cifar.cifar_logits",
    "dataset": "cifar10",
    "model": "resnet56",
    "data_dir": "none",
}
CHANGED = [  # what somebody does to 90 points of 10 classes, and what the line says of it
    (lambda z, y: (softmax(z), y), ["in [0, 1]"]),
    (lambda z, y: (np.concatenate([z, z]), np.concatenate([y, y])), ["180 points", "90"]),
    (lambda z, y: (z[:45], y[:45]), ["45 points", "90"]),
    (lambda z, y: (z[y < 9, :9], y[y < 9]), ["9 classes", "10", "points"]),
    (lambda z, y: (z[:, ::-1], y), ["accuracy", "published"]),
]


@pytest.mark.parametrize(("change", "words"), CHANGED)
def test_they_are_refused_if_they_cannot_be_the_benchmarks(request_tiny, folder, change, words):
    with np.load(folder / "digits.npz") as file:
        logits, labels = file["logits"], file["labels"]
    accuracy = 100 * float(np.mean(logits.argmax(axis=1) == labels))
    settings = requested(request_tiny, precomputed=folder)
    expected = {"source": OF_CIFAR, "points": 90, "published_accuracy": accuracy}
    settings = replace(settings, benchmark=replace(settings.benchmark, **expected))
    run_logits(plan_of(settings))
    logits, labels = change(logits, labels)
    np.savez(folder / "digits.npz", logits=logits, labels=labels)
    with fails(UnitsFailed, *words, "digits.npz", "paths.check_precomputed=false"):
        run_logits(plan_of(settings))
    anyway = replace(settings, paths=replace(settings.paths, check_precomputed=False))
    run_logits(plan_of(anyway))
    assert find_logits(anyway).n == len(labels)


def test_a_folder_without_the_file_computes(request_tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    settings = requested(request_tiny, precomputed=tmp_path / "empty")
    run_logits(plan_of(settings))
    assert find_logits(settings).n == 200


@pytest.mark.parametrize(
    ("similarity", "error", "told"),
    [
        ({"vectors_path": "vectors.txt"}, InputError, "vectors.txt"),
        ({"vectors_path": "absent.txt"}, MissingResource, "absent.txt"),
        ({"class_names": ["a", "b"], "vectors_path": "two.txt"}, UnitsFailed, "1000"),
    ],
)
def test_a_similarity_that_does_not_fit_is_refused_before_the_images_are_counted(
    similarity, error, told, tmp_path, monkeypatch
):
    def count(*arguments):
        raise AssertionError("the images are counted")

    (tmp_path / "vectors.txt").write_text("<html>not found</html>")
    (tmp_path / "two.txt").write_text("2 1\na 1\nb 2\n")
    settings = request_of("benchmark=imagenet_vit", f"paths.data={tmp_path}").units()[0].settings
    entry = dict(settings.benchmark.similarity) | similarity
    entry["vectors_path"] = str(tmp_path / entry["vectors_path"])
    if error is not UnitsFailed:
        monkeypatch.setattr("pathlib.Path.glob", count)
    changed = replace(settings.benchmark, similarity=entry)
    with fails(error, told):
        run_logits(plan_of(replace(settings, benchmark=changed)))


def test_digits_are_out_of_sample_over_confident_and_the_same_every_time():
    first, second = digits_logits(), digits_logits()
    np.testing.assert_array_equal(first.logits, second.logits)
    assert first.logits.shape == (1198, 10)
    confidence = softmax(first.logits, axis=1).max(axis=1).mean()
    accuracy = (first.logits.argmax(axis=1) == first.labels).mean()
    assert 0.93 < accuracy < 0.98
    assert confidence > accuracy + 0.01


EXACT = ("cifar10_resnet", "cifar10_resnet44", "cifar100_resnet")
"""Accuracies that are the published ones in all digits."""
BENCHMARKS = (*EXACT, "cifar10_repvgg", "cifar100_repvgg")


@pytest.fixture(scope="module")
def records(shared_dir, tmp_path_factory):
    """Records of the logits of the CIFAR suite, by benchmark."""
    folder = tmp_path_factory.mktemp("cifar")
    places = (f"paths.precomputed={shared_dir / 'logits'}", f"paths.data={folder}", "jobs=1")
    run_logits(Plan(request_of("suite=cifar", "calibrator=uncalibrated", *places).units()))
    return {name: record_of(folder / f"logits/{name}.npz") for name in BENCHMARKS}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_accuracy_is_the_published_one(records, benchmark):
    details = records[benchmark]["details"]
    assert details["n"] == 10_000
    away = 0.005 if benchmark in EXACT else 0.35
    assert details["accuracy"] == pytest.approx(details["published_accuracy"], abs=away)
    assert "chenyaofo" in details["origin"]["readme_says"]
