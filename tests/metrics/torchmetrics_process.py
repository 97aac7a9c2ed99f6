"""One of two processes that measure together: `python -m … RANK FOLDER`; see test_torchmetrics."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch import Tensor

from metrics import ClassWise, Decision, TopK
from metrics.utilities.base import UtilityClass
from pipeline.sources.heavy_imports import require

CLASSES, POINTS = 4, 300
SHARES = (slice(0, 130), slice(130, POINTS))
"""Which points each process has: not as many as the other."""


def points() -> tuple[Tensor, Tensor]:
    """Overconfident logits float32 [n, C] with ties, and labels [n]."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (POINTS,), generator=generator)
    noise = torch.randn(POINTS, CLASSES, generator=generator)
    logits = 3 * torch.eye(CLASSES)[labels] + 4 * noise
    return (2 * logits).round() / 2, labels


def near(p: Tensor) -> Tensor:
    """A utility of one's own: classes are the worse the further off they are."""
    read = p.argmax(dim=1, keepdim=True)
    return 1 - (read - torch.arange(CLASSES)).abs() / CLASSES


UTILITIES: dict[str, UtilityClass | Callable[[Tensor], Tensor] | None] = {
    "class-wise and top-K": None,
    "class-wise": ClassWise(),
    "top-K": TopK(),
    "decision": Decision(1 - torch.eye(CLASSES)),
    "function": near,
}


def measure(rank: int, folder: str) -> None:
    """Measure this process's points with the other's, and write the errors to `<rank>.pt`."""
    require("torchvision")  # torchmetrics imports it; its own way of importing it may fail
    from metrics.torchmetrics import UtilityCalibrationError

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=len(SHARES)
    )
    logits, labels = (values[SHARES[rank]] for values in points())
    errors = {}
    for name, utilities in UTILITIES.items():
        metric = UtilityCalibrationError(utilities, logits=True)
        for z, y in zip(logits.split(50), labels.split(50), strict=True):
            metric.update(z, y)
        errors[name] = float(metric.compute())
        assert sum(map(len, metric.labels)) == len(labels), "each keeps its own points afterwards"
    torch.save(errors, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    measure(int(sys.argv[1]), sys.argv[2])
