"""The metric for training loops: batches and processes together give the error of all points."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics import ClassWise, Decision, InputError, TopK
from utility_calibration.metrics.errors import MissingResource
from utility_calibration.metrics.utilities.base import utility_of

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


def near(p: Tensor) -> Tensor:
    """A function as utility: classes are the worse the further off they are."""
    read = p.argmax(dim=1, keepdim=True)
    return 1 - (read - torch.arange(CLASSES)).abs() / CLASSES


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
    for bad in ((logits, labels), (p, labels + CLASSES), (p, labels[:-1])):
        with pytest.raises(InputError, match=r"preds: values outside|target: "):
            metric.update(*bad)
    assert float(metric.compute()) == of_all(TopK())
    with pytest.raises(InputError, match="utilities: none"):
        UtilityCalibrationError([])
