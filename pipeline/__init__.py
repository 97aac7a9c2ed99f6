"""The stages, one module each, in the order data flows: logits, fit, evaluate, report.

Each runs by itself (`python -m pipeline.fit benchmark=digits calibrator=temperature split=3`) and
as a stage of `dvc repro`. Results are files under `results/`, one small folder per unit of work.
"""

import os
import signal
import sys
from types import FrameType

# torch's OpenMP threads and OpenBLAS's threads busy-wait after each matrix product and would occupy
# the cores that our numba kernels use next. These shorten the wait; they are read when torch and
# NumPy are loaded. OPENBLAS_THREAD_TIMEOUT is the log2 of cycles.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"ended before it began; nothing was changed\n")
    os._exit(128 + number)


def end_in_one_line() -> None:
    """For a program whose imports take a second: what ends it until `user_errors_in_one_line`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)


if sys.argv[:1] == ["-m"]:  # `python -m pipeline.<stage>`
    end_in_one_line()
