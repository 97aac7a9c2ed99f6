"""Measure calibration in one pass: time beside torch and the exact errors, and peak memory.

python -m utility_calibration.scripts.speed.streaming

Writes results/speed/streaming.md. It takes about four core minutes and 4 GB.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from utility_calibration.metrics import ClassWise, StreamingCalibration, TopClass, TopK
from utility_calibration.metrics.kernels.threads import set_threads
from utility_calibration.metrics.utilities.base import UtilityClass
from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.wording import markdown_table

from .__main__ import machine

OUTPUT = Path("results/speed/streaming.md")
TEXT = """\
Both contenders of a row get the same batches in turn, in one process, on one thread. Times are core
seconds; drawing the points is not counted. Peak memory is of a process of its own, with Python,
torch and the batch in it."""
SEED, LARGEST, FEW = 0, 20, range(1, 21)
Work = Callable[[Tensor, Tensor], object]


def batches(n: int, classes: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield logits float32 [size, C] and labels drawn from them, n points in all.

    The classes move by one place from batch to batch, so that drawing takes little of the time.
    """
    generator = torch.Generator().manual_seed(SEED)
    logits = 2 * torch.randn(size, classes, generator=generator)
    uniforms = torch.rand(size, 1, generator=generator)
    labels = torch.searchsorted(logits.softmax(dim=1).cumsum(dim=1), uniforms)[:, 0]
    labels = labels.clamp(max=classes - 1)
    for number in range(n // size):
        yield logits.roll(number, dims=1), (labels + number) % classes


def seconds(works: list[Work], n: int, classes: int, size: int) -> list[float]:
    """Return the core seconds of each piece of work on all batches; the first one warms up.

    A single batch has probabilities, several have logits.
    """
    spent = [0.0] * len(works)
    for number, (forecast, labels) in enumerate(batches(n + size, classes, size)):
        if size == n:
            forecast = forecast.double().softmax(dim=1)
        for k, work in enumerate(works):
            began = time.process_time()
            work(forecast, labels)
            spent[k] += (time.process_time() - began) * (number > 0)
    return spent


def times() -> str:
    """Measure and return the table of times."""
    rows = list[list[str]]()

    def add(
        what: str, n: int, classes: int, size: int, other: tuple[str, Work], ours: Work
    ) -> None:
        theirs, own = seconds([other[1], ours], n, classes, size)
        shape = f"{n:,} × {classes:,}"
        rows.append([what, shape, other[0], f"{theirs:.1f}", f"{own:.1f}", f"{own / theirs:.2f}"])
        say("  ".join(rows[-1]))

    plain = "torch: softmax and topk(20)"
    streaming = StreamingCalibration(TopK(FEW), 100, logits=True)
    ranked: Work = lambda logits, labels: logits.softmax(dim=1).topk(LARGEST, dim=1)  # noqa: E731
    add("top-K, K ≤ 20", 1_000_000, 100, 10_000, (plain, ranked), streaming.update)
    for what, utility in {"class-wise": ClassWise(), "top-K, all K": TopK()}.items():
        exact = ("exact errors", _exact(utility))
        add(what, 50_000, 1000, 50_000, exact, _streamed(utility))
    headings = ("Utilities", "Points × classes", "Other", "Other, s", "One pass, s", "Ratio")
    return markdown_table(headings, rows, text=3)


def _exact(utility: UtilityClass) -> Work:
    return utility.calibration_errors


def _streamed(utility: UtilityClass) -> Work:
    def run(probabilities: Tensor, labels: Tensor) -> object:
        streaming = StreamingCalibration(utility, probabilities.shape[1])
        streaming.update(probabilities, labels)
        return streaming.result()

    return run


def peak(n: int, classes: int, size: int) -> tuple[int, float]:
    """Return the peak memory of this process after a pass over n points, in MiB, and its seconds.

    All classes and K if there are ten, else the K up to 20, the top class and 20 classes.
    """
    torch.set_num_threads(1)
    set_threads(1)
    several = [ClassWise(), TopK()] if classes <= 10 else [TopK(FEW), TopClass(), ClassWise(FEW)]
    streaming, began = StreamingCalibration(several, classes, logits=True), time.process_time()
    for logits, labels in batches(n, classes, size):
        streaming.update(logits, labels)
    streaming.result()
    # `getrusage` would tell the peak of the process that started this one, if that is larger.
    status = Path("/proc/self/status").read_text()
    used = int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])
    return used >> 10, time.process_time() - began


def memory() -> str:
    """Measure and return the table of peak memory, each row in a process of its own."""
    rows, context = list[list[str]](), multiprocessing.get_context("spawn")
    for n, classes, size in ((10**5, 10, 10_000), (10**7, 10, 10_000), (102_400, 50_000, 512)):
        with context.Pool(1) as pool:
            used, spent = pool.apply(peak, (n, classes, size))
        rows.append([f"{n:,} × {classes:,}", f"{size:,}", f"{used:,}", f"{spent:.1f}"])
        say("  ".join(rows[-1]))
    headings = ("Points × classes", "Points of a batch", "Peak memory, MiB", "Core seconds")
    return markdown_table(headings, rows, text=1)


def main() -> int:
    """Measure, write, print."""
    torch.set_num_threads(1)
    set_threads(1)
    text = ["# Speed and memory of one pass", TEXT, machine(), times(), memory()]
    write_text(OUTPUT, "\n\n".join(text) + "\n")
    say(f"Written: {OUTPUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
