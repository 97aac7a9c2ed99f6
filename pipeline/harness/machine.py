"""Where and with what a result was made: what differs between two runs that agree."""

from __future__ import annotations

import os
import platform
import resource
import socket
import time
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("numpy", "scipy", "numba", "scikit-learn", "scikit-optimize", "torch"),
    *("torchvision", "timm", "transformers", "datasets"),
    *("probmetrics", "betacal", "venn-abers"),
)


def device_name(device: str) -> str:
    """`auto` becomes cuda where there is one, else cpu."""
    from pipeline.sources.inference import resolve_device

    return str(resolve_device(device))


def core_count() -> int:
    """Cores this process may use, which a scheduler may have made fewer than the machine has."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    asked = os.environ.get("SLURM_CPUS_PER_TASK", "")  # where Slurm counts cores and binds none
    return min(cores, int(asked)) if asked.isdigit() else cores


def free_memory() -> int:
    """Bytes that this process and its children may take, which a scheduler may have made fewer."""
    import psutil  # type: ignore[import-untyped]  # `status` has no use for it

    free = [psutil.virtual_memory().available]
    asked = os.environ.get("SLURM_MEM_PER_NODE", "")  # in megabytes; 0: all
    if asked.isdigit() and int(asked):
        free.append(int(asked) << 20)
    return min(free + _limits_of_groups())


def _limits_of_groups(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[int]:
    """The memory limits of the control groups (version 2) that this process is in."""
    try:
        folder = root / os.fsdecode(own.read_bytes()).rpartition("::")[2].strip().lstrip("/")
        around = [folder, *folder.parents]
        files = [one / "memory.max" for one in around if one.is_relative_to(root)]
        told = [file.read_text(encoding="ascii").strip() for file in files if file.exists()]
    except OSError:  # no such thing here
        return []
    return [int(text) for text in told if text.isdigit()]


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the installed libraries that results rest on."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def now() -> tuple[float, float]:
    """Seconds on the clock, and those that all cores together have worked for this process."""
    return time.perf_counter(), time.process_time()


def run_notes(began: tuple[float, float], device: str) -> dict[str, Any]:
    """What a unit notes of its run, `began` by `now`, in a file of its own that nobody commits.

    `peak_megabytes` is this process's largest resident memory so far, earlier units included.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": now()[0] - began[0],
        "core_seconds": now()[1] - began[1],
        "peak_megabytes": round(peak / 1024),
        "device": device,
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": core_count(),
        "versions": versions(),
    }
