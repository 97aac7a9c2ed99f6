"""What the numbers were measured on, in one line each."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.harness.machine import core_count

PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn")
PEERS = ("probmetrics", "torchmetrics", "netcal")
KERNELS = "OPENBLAS_CORETYPE"
GPU_NAME = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"


def processor() -> str:
    """Name of the processor and the number of cores that this process may use."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    # Cloud machines hide the model's name; family and model number still tell it apart.
    keys = {"model name": r"(.+)", "cpu family": r"(\d+)", "model": r"(\d+)"}
    known = [re.search(rf"^{key}\s*:\s*{value}$", text, re.M) for key, value in keys.items()]
    name, family, model = (found and found[1].strip() for found in known)
    name = name or platform.processor() or platform.machine()
    numbers = f" (family {family}, model {model})" if family and model else ""
    return f"{name}{numbers}, {core_count()} cores"


def versions() -> str:
    """Python, the packages that do the work and the installed peers, with their versions.

    And the processor that NumPy's OpenBLAS works for, where the environment names one.
    """
    found = ((package, _version(package)) for package in (*PACKAGES, *PEERS))
    here = [f"{package} {number}" for package, number in found if number]
    told = [f"{KERNELS}={os.environ[KERNELS]}"] if os.environ.get(KERNELS) else []
    return ", ".join([f"Python {platform.python_version()}", *here, *told])


def missing_peers() -> list[str]:
    """Peers that are not installed."""
    return [package for package in PEERS if _version(package) is None]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def gpu() -> str | None:
    """Name of the GPU that CUDA would use; None without one.

    Asked for in a process of its own: a process that has started CUDA cannot be forked any more.
    """
    asked = [sys.executable, "-c", GPU_NAME]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:  # a driver that hangs
        return None
    return answer.stdout.strip() or None
