"""The metric for training loops: batches and processes together give the error of all points."""

import socket

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.refusals import refuses
from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics import ClassWise, Decision, TopK
from utility_calibration.metrics.errors import MissingResource
from utility_calibration.metrics.utilities.function import utility_of

try:
    require("torchvision")  # torchmetrics imports it; its own way of importing it may fail
    from utility_calibration.metrics.torchmetrics import UtilityCalibrationError
except (ModuleNotFoundError, MissingResource) as error:
    pytest.skip(f"{error} (`make test-peers` has it)", allow_module_level=True)

CLASSES, POINTS = 4, 300


def points() -> tuple[Tensor, Tensor]:
    """Overconfident logits float32 [n, C] with ties, and labels [n]."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (POINTS,), generator=generator)
    noise = torch.randn(POINTS, CLASSES, generator=generator)
    logits = 3 * torch.eye(CLASSES)[labels] + 4 * noise
    return (2 * logits).round() / 2, labels


def near(p: np.ndarray) -> np.ndarray:
    """A function as utility: classes are the worse the further off they are."""
    read = p.argmax(axis=1, keepdims=True)
    return 1 - np.abs(read - np.arange(CLASSES)) / CLASSES


UTILITIES = {
    "class-wise and top-K": None,
    "decision": Decision(1 - torch.eye(CLASSES)),
    "function": near,
}


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
    logits, labels = (values.numpy() for values in points())
    metric = UtilityCalibrationError(TopK(), logits=True)
    z, y = logits[:100].copy(), labels[:100].copy()
    for start in range(0, POINTS, 100):
        z[:], y[:] = logits[start : start + 100], labels[start : start + 100]
        metric.update(z, y)
    assert float(metric.compute()) == of_all(TopK())


def test_points_gathered_from_two_processes_give_the_error_of_all_points() -> None:
    """Processes gather every state that is reduced by "cat" as torchmetrics does it."""
    logits, labels = points()
    gathered: dict[str, list] = {"forecasts": [], "labels": []}
    for share in (slice(0, 130), slice(130, POINTS)):
        metric = UtilityCalibrationError(logits=True)
        metric.update(logits[share], labels[share])
        for state, reduce in metric._reductions.items():
            gathered[state].append(reduce(getattr(metric, state)))
    metric.forecasts, metric.labels = gathered["forecasts"], gathered["labels"]
    assert float(metric.compute()) == of_all(None)


def test_probabilities_are_taken_where_no_logits_are_announced_and_bad_batches_refused() -> None:
    logits, labels = points()
    metric = UtilityCalibrationError(TopK())
    p = torch.softmax(logits.double(), dim=1)
    metric.update(p, labels)
    bad = [
        (logits, labels, "preds", "logits"),
        (p, labels + CLASSES, "target", "add the columns"),
        (p, labels[:-1], "target", "one per row"),
    ]
    for preds, target, field, fix in bad:
        with refuses(field, fix=fix):
            metric.update(preds, target)
    assert float(metric.compute()) == of_all(TopK())
    with refuses("utilities"):
        UtilityCalibrationError([])


def of_process(rank: int, port: int, results) -> None:
    """What two processes that share the points compute; the second one has fewer."""
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", None, 2, rank)
    logits, labels = points()
    share = slice(0, 130) if rank == 0 else slice(130, POINTS)
    metric = UtilityCalibrationError(logits=True, classes=CLASSES, buckets=1000)
    metric.update(logits[share], labels[share])
    results.put(float(metric.compute()))
    torch.distributed.destroy_process_group()


def test_sums_of_two_processes_give_the_error_of_one() -> None:
    metric = updated(UtilityCalibrationError(logits=True, classes=CLASSES, buckets=1000), 64)
    low, high = map(float, metric.bounds())
    assert low - 1e-12 <= of_all(None) <= high + 1e-12 and high - low < 0.01
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=of_process, args=(k, port, results)) for k in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    both = [results.get(), results.get()]
    assert both == pytest.approx([float(metric.compute())] * 2, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"classes": CLASSES, "buckets": 1000}])
def test_scores_of_many_dimensions_are_read_and_labels_left_out(options) -> None:
    logits, labels = points()
    expected = updated(UtilityCalibrationError(TopK(), logits=True, **options)).compute()
    cubes = logits.reshape(10, 30, CLASSES), logits.reshape(10, 30, CLASSES).movedim(-1, 1)
    for cube in cubes:
        metric = UtilityCalibrationError(TopK(), logits=True, ignore_index=-100, **options)
        metric.update(cube, labels.reshape(10, 30))
        metric.update(cube[:1], torch.full((1, 30), -100))
        assert float(metric.compute()) == pytest.approx(float(expected), abs=1e-12)
    with refuses("preds"):
        metric.update(torch.zeros(2, CLASSES, CLASSES), torch.zeros(2, CLASSES, dtype=int))
    odds = UtilityCalibrationError(ClassWise(), logits=True)
    odds.update(logits[:, 0] - logits[:, 1] + 0.1, (labels == 0).long())
    assert float(odds.compute()) > 0
