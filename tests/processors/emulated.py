"""Other processors, emulated by the code paths that OpenBLAS, NumPy and numba choose."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy._core._multiarray_umath import (  # type: ignore[attr-defined]
    __cpu_dispatch__,
    __cpu_features__,
)

ROOT = Path(__file__).resolve().parents[2]
THIS = "this processor"
Numbers = dict[str, str]
"""What each number is, and the number as the CSV files have it: with seven digits."""


def processors() -> dict[str, dict[str, str]]:
    """The environment of each processor that this one can play; only of itself if it is no x86."""
    found: dict[str, dict[str, str]] = {THIS: {}}
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return found
    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    newest = [name for name in dispatched if name.startswith("AVX512") or name == "X86_V4"]
    if newest:
        found["AVX2"] = _environment("Haswell", newest, "haswell")
    found["generic"] = _environment("Prescott", dispatched, "generic")
    return found


def _environment(openblas: str, without: Sequence[str], numba: str) -> dict[str, str]:
    return {
        "OPENBLAS_CORETYPE": openblas,
        "NPY_DISABLE_CPU_FEATURES": " ".join(without),
        "NUMBA_CPU_NAME": numba,
    }


def numbers_on(processor: Mapping[str, str], threads: int, *arguments: str) -> Numbers:
    """The numbers that `tests.processors.numbers` prints on a processor, on so many threads."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.processors.numbers", *arguments],
        env=environment | dict(processor),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    numbers: Numbers = json.loads(done.stdout.splitlines()[-1])
    return numbers


def differences(numbers: Numbers, others: Numbers) -> list[str]:
    """A line for each number that differs."""
    names = sorted(numbers.keys() | others.keys())
    return [
        f"{name}: {numbers.get(name)}, not {others.get(name)}"
        for name in names
        if numbers.get(name) != others.get(name)
    ]
