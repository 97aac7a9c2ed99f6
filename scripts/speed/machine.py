"""What the numbers were measured on, in one line each."""

from __future__ import annotations

import multiprocessing
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path

PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn")
PEERS = ("probmetrics", "torchmetrics", "netcal")
START_SECONDS = 120.0


def processor() -> str:
    """Name of the processor and the number of cores that this process may use."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.MULTILINE)
        name = found[1].strip() if found else name
    family = _cpu_family()
    return f"{name}{family}, {cores()} cores"


def _cpu_family() -> str:
    """Cloud machines hide the model's name; family and model number still tell it apart."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    numbers = [re.search(rf"^{key}\s*:\s*(\d+)$", text, re.M) for key in ("cpu family", "model")]
    return " (family {}, model {})".format(*(n[1] for n in numbers if n)) if all(numbers) else ""


def cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def versions() -> str:
    """Python and the packages that do the work; of the peers, those that are installed."""
    found = [f"Python {platform.python_version()}"]
    for package in (*PACKAGES, *PEERS):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def missing_peers() -> list[str]:
    """Peers that are not installed."""
    absent = []
    for package in PEERS:
        try:
            version(package)
        except PackageNotFoundError:
            absent.append(package)
    return absent


def gpu() -> str | None:
    """Name of the GPU that CUDA would use; None without one.

    Asked for in a process of its own: a process that has started CUDA cannot be forked any more.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_gpu_name, args=(sender,), daemon=True)
    child.start()
    sender.close()
    try:
        name = receiver.recv() if receiver.poll(START_SECONDS) else None
    except EOFError:
        name = None
    child.kill()
    child.join()
    return name


def _gpu_name(sender: Connection) -> None:
    import torch

    sender.send(torch.cuda.get_device_name() if torch.cuda.is_available() else None)
    sender.close()
