"""The forward pass of a model over a data set, batch by batch.

It is in plain float32 with TF32 off: calibration is measured on the logits themselves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from utility_calibration.metrics.errors import InputError, reason_of

from ..harness.machine import core_count, is_out_of_memory
from ..harness.task import Progress, no_progress
from .device import device_name, use_plain_float32
from .source_result import drawn_rows

Collate = Callable[[list[Any]], tuple[Any, Tensor]]


@dataclass(frozen=True)
class Run:
    """How a model is run over its data; an `InputError` names the setting of a wrong value."""

    device: str = "auto"
    """auto (CUDA if there is one), cpu, cuda or cuda:<k>"""
    batch_size: int = 256
    workers: int | None = 0
    """Processes that load and transform data; 0 loads in this one, None is one per core up to 8."""
    progress: Progress = no_progress
    on_error: str = "stop"
    """What an item that cannot be read does: stop, or skip."""
    rows: int | None = None
    """So many items drawn at random; None: all."""

    def __post_init__(self) -> None:
        _check_count("batch_size", self.batch_size, 1)
        if self.workers is not None:
            _check_count("workers", self.workers, 0)
        if self.on_error not in ("stop", "skip"):
            message = f"{self.on_error}, expected stop or skip"
            raise InputError(message, field="benchmark.source.on_error")

    @property
    def place(self) -> torch.device:
        """The device of the forward pass."""
        return torch.device(device_name(self.device))

    def described(self) -> dict[str, str]:
        """Device and precision of a run, for the record."""
        is_gpu = self.place.type == "cuda"
        name = torch.cuda.get_device_name(self.place) if is_gpu else self.place.type
        return {"device": name, "precision": "float32, TF32 off"}


def _check_count(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or value < least:
        message = f"{value}, expected a whole number of at least {least}"
        raise InputError(message, field=f"benchmark.source.{name}")


def forward_logits(
    model: torch.nn.Module,
    data: Any,
    run: Run,
    collate: Collate = default_collate,
    order: Sequence[int] | None = None,
    name_of: Callable[[int], str] = "item {}".format,
) -> tuple[NDArray[np.float32], NDArray[np.int64], list[str]]:
    """Logits [n, C] and labels [n] of one pass of `model` over `data`, in the order of the data.

    The third value names the items that could not be read, with the reason; they are left out.

    Args:
        model: takes one batch of inputs (a tensor or a mapping of tensors), returns [b, C].
        data: a map-style data set of n items (input, label).
        collate: turns a list of items into (inputs, labels).
        order: in which order items are computed, such as by length; the answer does not show it.
        name_of: the name of an item for messages, such as the path of an image.

    InputError: an item cannot be read, a logit is not finite, or memory is too small.
    """
    device = run.place
    drawn = set(drawn_rows(len(data), run.rows).tolist())
    places = [place for place in order or range(len(data)) if place in drawn]
    # The loader's items are numbers, so that an error of a worker process says which item it is of.
    loader: DataLoader[Any] = DataLoader(
        places,  # type: ignore[arg-type]
        run.batch_size,
        collate_fn=partial(_batch, data, collate),
        num_workers=min(8, core_count()) if run.workers is None else run.workers,
        pin_memory=device.type == "cuda",
    )
    batches: list[tuple[list[int], Tensor, Tensor]] = []
    skipped: dict[int, str] = {}
    use_plain_float32()
    with torch.inference_mode(), _memory_errors_in_one_line(run):
        model = model.to(device).eval()
        for number, (read_places, batch, unreadable) in enumerate(loader):
            run.progress(number * run.batch_size, len(places), "forward pass")
            for place, reason in unreadable.items():
                skipped[place] = f"{name_of(place)} ({reason})"
            if unreadable and run.on_error == "stop":
                skip = "set benchmark.source.on_error=skip to leave out what cannot be read"
                message = f"{'; '.join(skipped.values())}: cannot be read"
                raise InputError(message, fixes=["replace it", skip])
            if read_places:
                logits = model(_moved(batch[0], device)).float().cpu()
                _check_finite(logits, [name_of(place) for place in read_places])
                labels_of_batch = torch.as_tensor(batch[1]).to(torch.int64)
                batches.append((read_places, logits, labels_of_batch))
    if not batches:
        message = f"no item can be read: {'; '.join([*skipped.values()][:3])}"
        raise InputError(message, field="benchmark.source", fixes="name other data")
    run.progress(len(places), len(places), "forward pass")
    # From the order of the pass back to that of the data.
    places_of_batches, logits_of_batches, labels_of_batches = zip(*batches)
    by_place = np.argsort(np.concatenate(places_of_batches))
    all_logits = torch.cat(logits_of_batches).numpy()[by_place]
    all_labels = torch.cat(labels_of_batches).numpy()[by_place]
    return all_logits, all_labels, [skipped[place] for place in sorted(skipped)]


def _check_finite(logits: Tensor, names: Sequence[str]) -> None:
    finite = torch.isfinite(logits).all(dim=1)
    if not finite.all():
        message = "the model gives a logit that is no finite number"
        fixes = ["use weights that fit the model", "download them again, as they may be damaged"]
        raise InputError(message, file=names[int(finite.int().argmin())], fixes=fixes)


def warnings_on(skipped: Sequence[str]) -> list[str]:
    """The warning about items that were left out, for record and table."""
    if not skipped:
        return []
    more = ", ..." if len(skipped) > 5 else ""
    return [f"{len(skipped)} left out that cannot be read: {', '.join(skipped[:5])}{more}"]


def _batch(
    data: Any, collate: Collate, places: Sequence[int]
) -> tuple[list[int], Any, dict[int, str]]:
    """The places and the batch of the readable items, and the reasons of the others."""
    good: dict[int, Any] = {}
    reasons: dict[int, str] = {}
    for place in places:
        try:
            good[place] = data[place]
        except Exception as error:  # decoders raise anything at damaged bytes
            reasons[place] = reason_of(error)
    return list(good), collate(list(good.values())) if good else None, reasons


@contextmanager
def _memory_errors_in_one_line(run: Run) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if "DataLoader worker" in str(error):
            raise InputError(
                f"a process that loads data was killed, perhaps out of memory ({reason_of(error)})",
                fixes="set benchmark.source.workers=0, or fewer, and run again",
            ) from error
        if not is_out_of_memory(error):
            raise
        raise InputError(
            f"{run.batch_size} is too large for the memory of {run.place} ({reason_of(error)})",
            field="benchmark.source.batch_size",
            fixes=f"set benchmark.source.batch_size={max(1, run.batch_size // 2)}, or "
            "sources.device=cpu, and run again",
        ) from error


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, Mapping):
        return {name: value.to(device, non_blocking=True) for name, value in inputs.items()}
    return inputs.to(device, non_blocking=True)
