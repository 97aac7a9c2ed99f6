"""The forward pass of all pretrained models: it takes batches and returns float32 logits.

The default is plain float32 with TF32 off, because calibration is measured on the logits
themselves. Finished rows are kept in shards, so that a killed run continues. A shard is an npz of
consecutive rows (`logits` float32 [m, C], `labels` int64 [m]). Its folder is named by a digest of
weights, data, preprocessing and precision, on which the logits depend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from metrics.validation import InputError
from pipeline.harness.artifacts import CorruptFile, read_npz, sha256_of_json, write_npz
from pipeline.harness.machine import core_count, device_name
from pipeline.sources.result import Progress

PRECISIONS: dict[str, torch.dtype | None] = {
    "float32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}

FULL_FLOAT32: dict[str, Any] = {"enabled": True, "allow_tf32": False}
"""With TF32, GPUs round float32 convolutions to 10 bits. torch never uses it for matrices."""

Rows = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Logits [m, C] and labels [m] of consecutive items."""
Collate = Callable[[list[Any]], tuple[Any, Tensor]]


@dataclass(frozen=True)
class Run:
    """How a model is run over its data.

    Shards depend on the precision only: a smaller batch or another device may finish a killed run.
    """

    work_dir: Path
    """The folder of the shards."""
    device: str = "auto"
    """auto (CUDA if there is one), cpu, cuda or cuda:<k>."""
    batch_size: int = 256
    precision: str = "float32"
    """float32 (TF32 off), or mixed precision: bf16, fp16."""
    workers: int | None = 0
    """Processes that load and transform data; 0 loads in this one, None is one per core up to 8."""
    shard_size: int = 2048
    """Rows per shard. A killed run loses at most one shard of work."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(f"precision={self.precision}: choose one of {', '.join(PRECISIONS)}")
        if self.batch_size < 1:
            raise InputError(f"batch_size={self.batch_size}: must be at least 1")

    def described(self) -> dict[str, str]:
        """The device and precision of a run, for the record."""
        device = torch.device(device_name(self.device))
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        return {"device": name, "precision": self.precision}


def forward_logits(
    model: torch.nn.Module,
    data: Any,
    key: Mapping[str, Any],
    run: Run,
    collate: Collate | None = None,
) -> Rows:
    """Run `model` over `data` once and return its logits and the data's labels.

    Args:
        model: takes one batch of inputs (a tensor or a mapping of tensors), returns [b, C].
        data: a map-style data set of n items (input, label).
        key: identifies data and preprocessing; together with the weights it names the shards.
        run: device, batches, precision and the folder of the shards.
        collate: turns a list of items into (inputs, labels); torch's own by default.

    Returns:
        logits float32 [n, C] and labels int64 [n], in the order of `data`.

    Raises:
        MissingDevice: `run.device` names a GPU that does not exist.
        InputError: an item cannot be read, a logit is not finite, or the GPU's memory is too small.
    """
    n = len(data)
    if not n:
        raise InputError("the data set is empty; check data_dir")
    key = {**key, "weights": weights_digest(model), "precision": run.precision}
    digest = sha256_of_json({**key, "count": n, "shard_size": run.shard_size})
    model = model.to(torch.device(device_name(run.device))).eval()
    pieces: list[Rows] = []
    for start in range(0, n, run.shard_size):
        _report(run, start, n)
        stop = min(start + run.shard_size, n)
        path = run.work_dir / digest[:16] / f"{start:08d}.npz"
        rows = _read_shard(path)
        if rows is None:
            batches = []
            for batch in _run_batches(model, _loader(data, range(start, stop), run, collate), run):
                batches.append(batch)
                _report(run, start + sum(len(labels) for _, labels in batches), n)
            rows = _joined(batches)
            write_npz(path, logits=rows[0], labels=rows[1])
        pieces.append(rows)
    _report(run, n, n)
    return _joined(pieces)


def weights_digest(model: torch.nn.Module) -> str:
    """SHA-256 over the names, shapes and bytes of a model's parameters and buffers."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        value = value.detach().cpu().contiguous()
        digest.update(f"{name}{value.dtype}{list(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _read_shard(path: Path) -> Rows | None:
    """The rows of a shard, or None if it is absent or damaged."""
    try:
        arrays = read_npz(path)
        return arrays["logits"], arrays["labels"]
    except (FileNotFoundError, CorruptFile):
        return None


def _loader(data: Any, indices: range, run: Run, collate: Collate | None) -> DataLoader[Any]:
    return DataLoader(
        Subset(data, indices),
        batch_size=run.batch_size,
        collate_fn=collate,
        num_workers=min(8, core_count()) if run.workers is None else run.workers,
        pin_memory=torch.device(device_name(run.device)).type == "cuda",
    )


def _run_batches(model: torch.nn.Module, loader: DataLoader[Any], run: Run) -> Iterator[Rows]:
    dtype, device = PRECISIONS[run.precision], torch.device(device_name(run.device))
    for inputs, labels in _readable(loader):
        # The contexts end before each yield, so that they do not affect the caller.
        mixed = torch.autocast(device.type, dtype, enabled=dtype is not None)
        with torch.inference_mode(), torch.backends.cudnn.flags(**FULL_FLOAT32), mixed:
            try:
                logits = model(_moved(inputs, device)).float().cpu()
            except torch.cuda.OutOfMemoryError as error:
                raise InputError(
                    f"batch_size={run.batch_size}: too large for the GPU's memory; set "
                    f"benchmark.source.batch_size={max(1, run.batch_size // 2)} and run again"
                ) from error
        if not bool(torch.isfinite(logits).all()):
            hint = "" if dtype is None else "; use precision=float32"
            raise InputError(f"the model returned logits that are NaN or infinite{hint}")
        yield logits.numpy(), torch.as_tensor(labels).to(torch.int64).numpy()


def _readable(loader: DataLoader[Any]) -> Iterator[Any]:
    """The batches of `loader`. A worker's `InputError` is reduced to its message, the last line."""
    try:
        yield from loader
        return
    except InputError as error:
        line = str(error).strip().splitlines()[-1].rpartition("InputError: ")[2]
        error.__traceback__ = None  # it holds the loader, whose processes would otherwise stay
    raise InputError(line)


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Mapping):
        return {name: value.to(device, non_blocking=True) for name, value in inputs.items()}
    return inputs.to(device, non_blocking=True)


def _joined(pieces: list[Rows]) -> Rows:
    return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])


def _report(run: Run, done: int, total: int) -> None:
    if run.progress is not None:
        run.progress(done, total, "forward pass")
