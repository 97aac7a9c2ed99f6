"""The metric for training loops: batches and processes together give the error of all points."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from metrics import ClassWise, InputError, TopK
from metrics.diagram import utility_of
from pipeline.sources.heavy_imports import require
from pipeline.sources.result import MissingResource
from tests.metrics.torchmetrics_process import CLASSES, POINTS, SHARES, UTILITIES, points

try:
    require("torchvision")  # torchmetrics imports it; its own way of importing it may fail
    from metrics.torchmetrics import UtilityCalibrationError
except (ModuleNotFoundError, MissingResource) as error:
    pytest.skip(f"{error} (`make test-peers` has it)", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]


def of_all(utilities) -> float:
    """The error by the public functions, on all points at once."""
    logits, labels = points()
    p = torch.softmax(logits.double(), dim=1)
    classes = [ClassWise(), TopK()] if utilities is None else [utility_of(utilities)]
    return max(float(one.calibration_errors(p, labels).max()) for one in classes)


def updated(metric, size: int = POINTS):
    logits, labels = points()
    for z, y in zip(logits.split(size), labels.split(size), strict=True):
        metric.update(z, y)
    return metric


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("size", [1, 64, POINTS])
def test_batches_together_give_the_error_of_all_points(name: str, size: int) -> None:
    metric = updated(UtilityCalibrationError(UTILITIES[name], logits=True), size)
    assert float(metric.compute()) == of_all(UTILITIES[name]) > 0.05


def test_points_stay_what_they_were_when_a_numpy_buffer_is_reused() -> None:
    logits, labels = (part.numpy() for part in points())
    metric, size = UtilityCalibrationError(UTILITIES["top-K"], logits=True), len(labels) // 2
    z, y = logits[:size].copy(), labels[:size].copy()
    for start in (0, size):
        z[:], y[:] = logits[start : start + size], labels[start : start + size]
        metric.update(z, y)
    whole = UtilityCalibrationError(UTILITIES["top-K"], logits=True)
    whole.update(logits[: 2 * size], labels[: 2 * size])
    assert float(metric.compute()) == float(whole.compute())


def test_two_processes_together_give_the_error_of_all_points(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.metrics.torchmetrics_process"]
    running = [
        subprocess.Popen([*program, str(rank), str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE)
        for rank in range(len(SHARES))
    ]
    said = [process.communicate(timeout=300)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    for rank in range(len(SHARES)):
        errors = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        whole = {name: of_all(utilities) for name, utilities in UTILITIES.items()}
        assert errors == pytest.approx(whole, rel=1e-12)


def test_reset_forgets_all_points() -> None:
    metric = updated(UtilityCalibrationError(logits=True))
    before = metric.compute()
    metric.reset()
    with pytest.raises(InputError, match="no points"), pytest.warns(UserWarning, match="before"):
        metric.compute()
    assert updated(metric).compute() == before


def test_several_utilities_give_the_largest_error_of_all() -> None:
    together = updated(UtilityCalibrationError([ClassWise(), UTILITIES["function"]], logits=True))
    assert float(together.compute()) == max(of_all(ClassWise()), of_all(UTILITIES["function"]))


def test_probabilities_are_taken_where_no_logits_are_announced() -> None:
    logits, labels = points()
    metric = UtilityCalibrationError(TopK())
    metric.update(torch.softmax(logits.double(), dim=1), labels)
    assert float(metric.compute()) == of_all(TopK())
    with pytest.raises(InputError, match="preds: values outside"):
        metric.update(logits, labels)


def test_bad_batches_are_refused_and_leave_no_points() -> None:
    logits, labels = points()
    metric = UtilityCalibrationError(logits=True)
    with pytest.raises(InputError, match="target"):
        metric.update(logits, labels + CLASSES)
    with pytest.raises(InputError, match="target"):
        metric.update(logits, labels[:-1])
    assert metric.forecasts == []
    with pytest.raises(InputError, match="utilities: none"):
        UtilityCalibrationError([])


def test_the_points_survive_a_pickle_as_the_metric_travels_between_processes() -> None:
    metric = updated(UtilityCalibrationError(ClassWise(), logits=True))
    assert pickle.loads(pickle.dumps(metric)).compute() == metric.compute()


def test_metrics_of_one_collection_share_their_points() -> None:
    collection = require("torchmetrics").MetricCollection(
        {"cwe": UtilityCalibrationError(ClassWise()), "topk": UtilityCalibrationError(TopK())}
    )
    logits, labels = points()
    for z, y in zip(logits.softmax(1).split(100), labels.split(100), strict=True):
        collection.update(z, y)
    assert len(collection.compute_groups) == 1
    errors = collection.compute()
    assert {name: float(error) for name, error in errors.items()} == pytest.approx(
        {"cwe": of_all(ClassWise()), "topk": of_all(TopK())}, abs=1e-6
    )
