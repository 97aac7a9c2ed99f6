"""The forward pass of all pretrained models: it takes batches and returns float32 logits.

It is in plain float32 with TF32 off, because calibration is measured on the logits themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from metrics.validation import InputError
from pipeline.harness.machine import core_count, device_name
from pipeline.harness.parallel import Progress

FULL_FLOAT32: dict[str, Any] = {"enabled": True, "allow_tf32": False}
"""With TF32, GPUs round float32 convolutions to 10 bits. torch never uses it for matrices."""


@dataclass(frozen=True)
class Run:
    """How a model is run over its data."""

    device: str = "auto"
    """auto (CUDA if there is one), cpu, cuda or cuda:<k>."""
    batch_size: int = 256
    workers: int | None = 0
    """Processes that load and transform data; 0 loads in this one, None is one per core up to 8."""
    progress: Progress | None = None

    def described(self) -> dict[str, str]:
        """The device of a run, for the record."""
        device = torch.device(device_name(self.device))
        is_gpu = device.type == "cuda"
        return {"device": torch.cuda.get_device_name(device) if is_gpu else device.type}


def forward_logits(
    model: torch.nn.Module,
    data: Any,
    run: Run,
    collate: Callable[[list[Any]], tuple[Any, Tensor]] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Run `model` over `data` once and return its logits and the data's labels.

    Args:
        model: takes one batch of inputs (a tensor or a mapping of tensors), returns [b, C].
        data: a map-style data set of n items (input, label).
        run: device and batches.
        collate: turns a list of items into (inputs, labels); torch's own by default.

    Returns:
        logits float32 [n, C] and labels int64 [n], in the order of `data`.

    Raises:
        MissingDevice: `run.device` names a GPU that does not exist.
        InputError: the GPU's memory is too small for a batch.
    """
    device = torch.device(device_name(run.device))
    loader: DataLoader[Any] = DataLoader(
        data,
        batch_size=run.batch_size,
        collate_fn=collate,
        num_workers=min(8, core_count()) if run.workers is None else run.workers,
        pin_memory=device.type == "cuda",
    )
    model = model.to(device).eval()
    logits: list[Tensor] = []
    labels: list[Tensor] = []
    with torch.inference_mode(), torch.backends.cudnn.flags(**FULL_FLOAT32):
        for batch, (inputs, truth) in enumerate(loader):
            if run.progress is not None:
                run.progress(batch * run.batch_size, len(data), "forward pass")
            try:
                logits.append(model(_moved(inputs, device)).cpu())
            except torch.cuda.OutOfMemoryError as error:
                raise InputError(
                    f"batch_size={run.batch_size}: too large for the GPU's memory; set "
                    f"benchmark.source.batch_size={max(1, run.batch_size // 2)} and run again"
                ) from error
            labels.append(torch.as_tensor(truth).to(torch.int64))
    if run.progress is not None:
        run.progress(len(data), len(data), "forward pass")
    return torch.cat(logits).numpy(), torch.cat(labels).numpy()


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Mapping):
        return {name: value.to(device, non_blocking=True) for name, value in inputs.items()}
    return inputs.to(device, non_blocking=True)
