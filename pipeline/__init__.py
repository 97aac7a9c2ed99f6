"""The stages, one module each, in the order data flows: logits, fit, evaluate, report.

Each runs by itself (`python -m pipeline.fit benchmark=digits calibrator=temperature split=3`) and
as a stage of `dvc repro`. Results are files under `results/`, one small folder per unit of work.
"""

import os
import signal
import sys
from types import FrameType

import calibrators  # noqa: F401  (before torch and NumPy: it says how threads are to wait)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"ended before it began; nothing was changed\n")
    os._exit(128 + number)


def end_in_one_line() -> None:
    """For a program whose imports take a second: what ends it until `user_errors_in_one_line`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)


if sys.argv[:1] == ["-m"]:  # `python -m pipeline.<stage>`
    end_in_one_line()
