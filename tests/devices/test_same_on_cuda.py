"""Calibrators and metrics give on a CUDA device what they give on the CPU, and leave it there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor

import calibrators
import metrics
from calibrators.base import Calibrator
from tests.devices.cases import (
    CALIBRATORS,
    CLASSES,
    ON_LOGITS,
    ON_PROBABILITIES,
    POINTS,
    UTILITIES,
    Case,
)
from tests.devices.emulated_cuda import emulated_cuda

REAL = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
TOLERANCE = 1e-9


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The inputs are tiny: threads would cost more than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["emulated", pytest.param("real", marks=REAL)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of CUDA device that "cuda" means during the test."""
    if request.param == "real":
        yield "real"
        return
    with emulated_cuda():
        yield "emulated"


@pytest.fixture(scope="module")
def data() -> tuple[Tensor, Tensor]:
    """Logits float32 [n, C] of a classifier that is right more often than not, and labels."""
    random = np.random.default_rng(0)
    labels = random.integers(CLASSES, size=POINTS)
    truth = np.eye(CLASSES)[labels]
    logits = random.normal(size=truth.shape) + 3 * truth * random.random((POINTS, 1))
    return torch.from_numpy(logits.astype(np.float32)), torch.from_numpy(labels)


def assert_same(case: Case, inputs: Tensor, labels: Tensor, tolerance: float) -> None:
    expected = case(inputs.clone(), labels)
    moved, moved_labels = inputs.to("cuda"), labels.to("cuda")
    computed = case(moved, moved_labels)
    assert torch.equal(moved.cpu(), inputs) and torch.equal(moved_labels.cpu(), labels)
    assert expected.keys() == computed.keys()
    for name, value in expected.items():
        found: Any = computed[name]
        if isinstance(value, Tensor):
            assert found.device.type == "cuda", name
            assert found.dtype == value.dtype, name
            found, value = found.cpu().numpy(), value.numpy()
        np.testing.assert_allclose(found, value, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ON_LOGITS)
def test_a_calibrator_gives_the_same_on_the_device(
    name: str, device: str, data: tuple[Tensor, Tensor]
) -> None:
    # Kernels of a real GPU sum in float32 in another order, and fits end within their tolerance.
    assert_same(ON_LOGITS[name], *data, TOLERANCE if device == "emulated" else 1e-4)


@pytest.mark.parametrize("name", ON_PROBABILITIES)
def test_a_metric_gives_the_same_on_the_device(
    name: str, device: str, data: tuple[Tensor, Tensor]
) -> None:
    logits, labels = data
    assert_same(ON_PROBABILITIES[name], torch.softmax(logits.double(), dim=1), labels, TOLERANCE)


@pytest.mark.parametrize("name", [*CALIBRATORS])
def test_what_was_fitted_on_the_device_is_stored_for_any(
    name: str, device: str, data: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    logits, labels = data
    fitted = clone(CALIBRATORS[name]).fit(logits.to("cuda"), labels.to("cuda"))
    loaded = Calibrator.load(fitted.save(tmp_path / "fitted.npz"))
    assert torch.equal(loaded.predict_proba(logits), fitted.predict_proba(logits))
    there = loaded.predict_proba(logits.to("cuda"))
    assert torch.equal(there, fitted.predict_proba(logits.to("cuda")))


def test_every_calibrator_has_a_case() -> None:
    public = [getattr(calibrators, name) for name in calibrators.__all__]
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Calibrator)}
    assert {type(case) for case in CALIBRATORS.values()} == kinds - {Calibrator}


def test_every_utility_class_has_a_case() -> None:
    public = [getattr(metrics, name) for name in metrics.__all__]
    classes = {kind for kind in public if isinstance(kind, type)}
    classes = {kind for kind in classes if issubclass(kind, metrics.UtilityClass)}
    covered = {kind for case in UTILITIES.values() for kind in type(case).__mro__}
    assert classes <= covered
