"""The shared forward pass: the same logits whatever the batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metrics.validation import InputError
from pipeline.sources.inference import Run, forward_logits

ROWS, CLASSES = 23, 4


class Points:
    """23 items (features [5], label)."""

    def __init__(self, rows: int = ROWS) -> None:
        generator = torch.Generator().manual_seed(3)
        self.inputs = torch.randn(rows, 5, generator=generator)
        self.labels = torch.randint(CLASSES, (rows,), generator=generator)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.inputs[index], int(self.labels[index])


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, CLASSES)
    )


def logits_of(data: Any = None, **options: Any) -> tuple[Any, Any]:
    run = Run(**{"device": "cpu", "batch_size": 4, **options})
    return forward_logits(network(), data if data is not None else Points(), run)[:2]


def test_logits_and_labels_in_the_order_of_the_data() -> None:
    data, seen = Points(), []
    logits, labels = logits_of(
        data, progress=lambda done, total, what="": seen.append((done, total))
    )
    with torch.inference_mode():
        expected = network().eval()(data.inputs)
    assert logits.dtype == np.float32 and labels.dtype == np.int64
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-6)
    np.testing.assert_array_equal(labels, data.labels.numpy())
    assert seen[0] == (0, ROWS) and seen[-1] == (ROWS, ROWS)
    assert seen == sorted(seen)


def test_batches_and_workers_do_not_change_the_logits() -> None:
    reference, _ = logits_of()
    logits, labels = logits_of(batch_size=7, workers=2)
    np.testing.assert_allclose(logits, reference, atol=1e-6)
    np.testing.assert_array_equal(labels, Points().labels.numpy())


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
def test_out_of_memory_is_one_line(
    method: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(torch.nn.Sequential, method, fail)
    with pytest.raises(InputError, match=r"memory of cpu .*source\.batch_size=2, or") as caught:
        logits_of()
    assert "\n" not in str(caught.value)


def test_another_error_of_the_pass_stays_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.nn.Sequential, "forward", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        logits_of()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_gpu_and_cpu_agree() -> None:
    on_gpu, _ = logits_of(device="cuda")
    np.testing.assert_allclose(on_gpu, logits_of()[0], atol=1e-5)
