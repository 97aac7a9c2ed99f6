"""The forward pass that every pretrained model shares: batches in, float32 logits out.

Progress, device, batch size and precision are the caller's choice; the default is plain float32
with TF32 off, because calibration is measured on the logits themselves. What is finished is kept
in shards (pipeline/sources/shards.py), so a killed run continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from metrics.validation import InputError
from pipeline.harness.machine import core_count, device_name
from pipeline.sources.result import Progress
from pipeline.sources.shards import Rows, Shards, weights_digest

PRECISIONS: dict[str, torch.dtype | None] = {
    "float32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


class LabelledData(Sized, Protocol):
    """A map-style data set: item i is (input, label)."""

    def __getitem__(self, index: int) -> Any: ...


@dataclass(frozen=True)
class Run:
    """How a model is run over its data.

    Of these only the precision counts for what is kept of a killed run: a smaller batch or another
    device may finish it.
    """

    work_dir: Path
    """Where shards are kept."""
    device: str = "auto"
    """auto (CUDA if there is one), cpu, cuda or cuda:<k>."""
    batch_size: int = 256
    precision: str = "float32"
    """float32 (TF32 off), or mixed precision: bf16, fp16."""
    workers: int | None = 0
    """Processes that load and transform data; 0 loads in this one, None is one per core up to 8."""
    shard_size: int = 2048
    """Rows per shard: at most this much work is lost when a run is killed."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(f"precision={self.precision}: choose one of {', '.join(PRECISIONS)}")
        for name, least in (("batch_size", 1), ("shard_size", 1), ("workers", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}={value}: must be at least {least}")

    def described(self) -> dict[str, str]:
        """What the record says of a run: which kind of arithmetic made the logits."""
        device = torch.device(device_name(self.device))
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        return {"device": name, "precision": self.precision}


def forward_logits(
    model: torch.nn.Module,
    data: LabelledData,
    key: Mapping[str, Any],
    run: Run,
    collate: Callable[[list[Any]], tuple[Any, Tensor]] | None = None,
) -> Rows:
    """Run `model` over `data` once and return its logits and the data's labels.

    Args:
        model: takes one batch of inputs (a tensor or a mapping of tensors), returns [b, C].
        data: n items (input, label).
        key: what identifies data and preprocessing; with the model's weights it names the shards.
        run: device, batches, precision and where to keep shards.
        collate: turns a list of items into (inputs, labels); torch's own by default.

    Returns:
        logits float32 [n, C] and labels int64 [n], in the order of `data`.

    Raises:
        MissingResource: `run.device` asks for a GPU that is not there.
        InputError: an item cannot be read, a logit is not finite, or the GPU's memory is too small.
    """
    if not len(data):
        raise InputError("the data set is empty; check data_dir")
    device = torch.device(device_name(run.device))
    full_key = {**key, "weights": weights_digest(model), "precision": run.precision}
    shards = Shards(run.work_dir, full_key, len(data), run.shard_size)
    missing = shards.missing()
    report = run.progress or _silent
    done = len(data) - sum(stop - start for start, stop in missing)
    report(done, len(data), "forward pass")
    if missing:
        batches = _run_batches(model.to(device).eval(), _loader(data, missing, run, collate), run)
        _fill(shards, missing, batches, lambda rows: report(done + rows, len(data), "forward pass"))
    return shards.collect()


@contextmanager
def full_float32() -> Iterator[None]:
    """TF32 off inside: GPUs otherwise round float32 convolutions to 10 bits by default."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, cudnn.allow_tf32)
    matmul.allow_tf32, cudnn.allow_tf32 = False, False
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def _fill(
    shards: Shards,
    missing: list[tuple[int, int]],
    batches: Iterator[Rows],
    report: Callable[[int], None],
) -> None:
    """Write the missing shards from `batches`, which hold exactly their rows in order."""
    finished = 0
    for start, stop in missing:
        pieces: list[Rows] = []
        rows = 0
        while rows < stop - start:
            pieces.append(next(batches))
            rows += len(pieces[-1][1])
            report(finished + rows)
        shards.write(
            start, np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])
        )
        finished += rows


def _loader(
    data: LabelledData,
    missing: list[tuple[int, int]],
    run: Run,
    collate: Callable[[list[Any]], tuple[Any, Tensor]] | None,
) -> DataLoader[Any]:
    """One loader for all that is missing, so that its workers start once."""
    return DataLoader(
        data,  # type: ignore[arg-type]
        batch_sampler=_batches(missing, run.batch_size),
        collate_fn=collate,
        num_workers=min(8, core_count()) if run.workers is None else run.workers,
        pin_memory=torch.device(device_name(run.device)).type == "cuda",
    )


def _batches(missing: list[tuple[int, int]], size: int) -> list[list[int]]:
    """Indices batch by batch; no batch spans two shards."""
    return [
        list(range(first, min(first + size, stop)))
        for start, stop in missing
        for first in range(start, stop, size)
    ]


def _run_batches(model: torch.nn.Module, loader: DataLoader[Any], run: Run) -> Iterator[Rows]:
    dtype, device = PRECISIONS[run.precision], torch.device(device_name(run.device))
    for inputs, labels in _readable(loader):
        # The contexts are left before each yield: they must not leak into the caller.
        mixed = torch.autocast(device.type, dtype, enabled=dtype is not None)
        with torch.inference_mode(), full_float32(), mixed:
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
    """The batches of `loader`; a worker's `InputError` comes back as the one line it was."""
    try:
        yield from loader
        return
    except InputError as error:
        line = str(error).strip().splitlines()[-1].rpartition("InputError: ")[2]
        error.__traceback__ = None  # it keeps the loader, whose processes would end only later
    raise InputError(line)


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Mapping):
        return {name: value.to(device, non_blocking=True) for name, value in inputs.items()}
    return inputs.to(device, non_blocking=True)


def _silent(done: int, total: int, what: str = "") -> None:
    """The progress of a run without a bar."""
