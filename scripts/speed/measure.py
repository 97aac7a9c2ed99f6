"""Time and peak memory of one contender, in a process of its own.

The process is forked from one that holds the inputs and has computed nothing with threads, so it
starts at once, its peak memory is the contender's alone, and it can be killed. Seconds are wall
clock. Memory is what the process holds at its peak beyond inputs and libraries.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import multiprocessing
import os
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from scripts.speed.case import Answer, Contender
from scripts.speed.inputs import Arrays

RUNS = 5
"""Timed runs, the median counts."""
MANY_RUNS, MANY_SECONDS = 30, 0.5
"""Short work is repeated up to so many times or seconds: its scatter is larger."""
SLOW_SECONDS, SLOW_RUNS = 30.0, 1
"""Another package's work that takes longer is run so many times only; the table says so."""
TIME_LIMIT = 1200.0
"""Seconds for warm-up and all runs of a contender: five runs of four minutes."""
MIB = 1 << 20
SLACK = 8 * MIB
"""By how much the kernel's two counts of the memory held may differ."""


@dataclass(frozen=True)
class Measurement:
    """Seconds of every run (per step where there are steps), and memory in bytes, where known."""

    seconds: tuple[float, ...]
    host_bytes: int | None
    gpu_bytes: int | None

    @property
    def median(self) -> float:
        """The median of the runs."""
        return statistics.median(self.seconds)


class Failed(Exception):
    """A contender without a result; the one-line reason."""


def is_installed(contender: Contender) -> bool:
    """Whether the contender's package can be imported."""
    return contender.package is None or importlib.util.find_spec(contender.package) is not None


def measure(
    contender: Contender,
    inputs: Arrays,
    warm_up: Arrays,
    runs: int = RUNS,
    time_limit: float = TIME_LIMIT,
) -> tuple[Measurement, Answer]:
    """Run `contender` on `inputs` in a forked process; return its measurement and its answer.

    It first runs on the tiny `warm_up` (imports, compilation, threads), outside the clock.

    Raises:
        Failed: it raised, died or took longer than `time_limit` seconds.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    arguments = (sender, contender, inputs, warm_up, runs)
    child = context.Process(target=_child, args=arguments, daemon=True)
    child.start()
    sender.close()
    try:
        if not receiver.poll(time_limit):
            raise Failed(f"longer than {time_limit:.0f} s")
        outcome = receiver.recv()
    except EOFError:
        child.join()
        raise Failed(f"its process died (exit code {child.exitcode})") from None
    finally:
        child.kill()
        child.join()
    if isinstance(outcome, str):
        raise Failed(outcome)
    measurement, answer = outcome
    return measurement, answer


def _child(
    sender: Connection, contender: Contender, inputs: Arrays, warm_up: Arrays, runs: int
) -> None:
    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        result: Any = _measured(contender, inputs, warm_up, runs)
    except KeyboardInterrupt:
        os._exit(130)
    except Exception as error:
        result = f"{type(error).__name__}: {error}".splitlines()[0]
    sender.send(result)
    sender.close()


def _measured(
    contender: Contender, inputs: Arrays, warm_up: Arrays, runs: int
) -> tuple[Measurement, Answer]:
    contender.run(contender.prepare(warm_up, contender.device))
    prepared = contender.prepare(inputs, contender.device)
    gc.collect()
    finish, gpu_peak = _cuda_clock() if contender.device == "cuda" else (lambda: None, lambda: None)
    before = _start_host_peak()
    seconds: list[float] = []
    result = None
    while len(seconds) < _wanted(seconds, runs, is_peer=contender.package is not None):
        result = None  # the answer of the run before must not count as memory of this one
        began = time.perf_counter()
        result = contender.run(prepared)
        finish()
        seconds.append(time.perf_counter() - began)
    per_step = tuple(value / contender.steps for value in seconds)
    measurement = Measurement(per_step, _host_peak(before), gpu_peak())
    return measurement, contender.answer(prepared, result)


def _wanted(seconds: list[float], runs: int, is_peer: bool) -> int:
    """How many runs there should be, after those in `seconds`."""
    if is_peer and seconds and seconds[0] > SLOW_SECONDS:
        return min(runs, SLOW_RUNS)
    if len(seconds) >= runs and runs >= RUNS and sum(seconds) < MANY_SECONDS:
        return min(MANY_RUNS, len(seconds) + 1)
    return runs


def _cuda_clock() -> tuple[Callable[[], object], Callable[[], int | None]]:
    """What waits for the GPU, and what tells its peak memory beyond what is held now."""
    from torch import cuda

    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    return cuda.synchronize, lambda: cuda.max_memory_allocated() - before


def _status(field: str) -> int | None:
    """A size in bytes from Linux's account of this process; None elsewhere."""
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB", path.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _start_host_peak() -> int | None:
    """Memory held now, from which its high-water mark starts anew; None where it cannot."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    held, mark = _status("VmRSS"), _status("VmHWM")
    return held if held and mark and mark < held + SLACK else None


def _host_peak(before: int | None) -> int | None:
    peak = _status("VmHWM")
    return None if before is None or peak is None else max(0, peak - before)
