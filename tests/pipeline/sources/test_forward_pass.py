"""The shared forward pass: the same logits whatever the batches."""

import numpy as np
import pytest
import torch

from tests.pipeline.sources.conftest import refused
from tests.refusals import fails
from utility_calibration.pipeline.sources.device import MissingDevice, device_name
from utility_calibration.pipeline.sources.forward_pass import Run, forward_logits
from utility_calibration.pipeline.sources.source_result import drawn_rows

ROWS, CLASSES = 23, 4
INPUTS = torch.randn(ROWS, 5, generator=torch.Generator().manual_seed(3))
LABELS = np.arange(ROWS) % CLASSES
POINTS = list(zip(INPUTS, LABELS.tolist()))
"""23 items (features [5], label)."""


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, CLASSES)
    )


def logits_of(**options):
    run = Run(**{"device": "cpu", "batch_size": 4, **options})
    return forward_logits(network(), POINTS, run)[:2]


@pytest.mark.parametrize("options", [{}, {"batch_size": 7, "workers": 2}, {"rows": 9}])
def test_logits_and_labels_are_those_of_one_batch_in_the_order_of_the_data(options):
    kept, seen = drawn_rows(ROWS, options.get("rows", ROWS)), []
    logits, labels = logits_of(
        progress=lambda done, total, what="": seen.append((done, total)), **options
    )
    with torch.inference_mode():
        expected = network().eval()(INPUTS).numpy()
    assert logits.dtype == np.float32 and labels.dtype == np.int64
    np.testing.assert_allclose(logits, expected[kept], atol=1e-6)
    np.testing.assert_array_equal(labels, LABELS[kept])
    assert seen[0] == (0, len(kept)) and seen[-1] == (len(kept), len(kept))
    assert seen == sorted(seen)


def test_a_gpu_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert device_name("auto") == "cpu"
    with fails(MissingDevice, "sources.device=cuda"):
        device_name("cuda")


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize("method", ["to", "forward"])
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nSee the manual."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        MemoryError("Unable to allocate 9 GiB"),
    ],
)
def test_out_of_memory_is_one_line(method, error, monkeypatch):
    monkeypatch.setattr(torch.nn.Sequential, method, failing(error))
    refused("memory cpu source.batch_size=2", logits_of)


def test_another_error_of_the_pass_stays_itself(monkeypatch):
    error = RuntimeError("CUDA error: an illegal memory access was encountered")
    monkeypatch.setattr(torch.nn.Sequential, "forward", failing(error))
    with pytest.raises(RuntimeError, match="illegal"):
        logits_of()
