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
DRIVERS = tuple(map(Path, ("/proc/driver/nvidia", "/dev/kfd", "/dev/dxg")))
"""What there is of with a GPU: NVIDIA's, AMD's, Windows' in its Linux."""


def device_name(device: str) -> str:
    """`auto` becomes cuda where there is one, else cpu."""
    from pipeline.sources.inference import resolve_device

    return str(resolve_device(device))


def has_no_gpu(device: str) -> bool:
    """Whether `device` is the CPU, as far as can be told without torch, which loads for seconds."""
    return device == "cpu" or (device == "auto" and not any(path.exists() for path in DRIVERS))


def core_count() -> int:
    """Cores this process may use, which a scheduler may have made fewer than the machine has."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    asked = os.environ.get("SLURM_CPUS_PER_TASK", "")  # where Slurm counts cores and binds none
    return min(cores, int(asked)) if asked.isdigit() else cores


def free_memory() -> int:
    """Bytes that this process and its children may take, which a scheduler may have made fewer."""
    import psutil  # type: ignore[import-untyped]  # `status` has no use for it

    return min([psutil.virtual_memory().available, *_limits_of_slurm(), *_free_in_groups()])


def _limits_of_slurm() -> list[int]:
    """The memory of the job on this node, given in megabytes, whole or per core; 0: all."""
    asked = [
        ("SLURM_MEM_PER_NODE", "1"),
        ("SLURM_MEM_PER_CPU", os.environ.get("SLURM_CPUS_ON_NODE", "1")),
    ]
    told = [(os.environ.get(name, ""), cores) for name, cores in asked]
    return [
        (int(megabytes) * int(cores)) << 20
        for megabytes, cores in told
        if megabytes.isdigit() and cores.isdigit() and int(megabytes) and int(cores)
    ]


GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Of control groups of version 2 and 1: limit, use, and what of the use is cache given back."""


def _free_in_groups(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[int]:
    """What is free in the control groups that have a memory limit and hold this process."""
    try:
        lines = os.fsdecode(own.read_bytes()).splitlines()
        groups = [line.split(":", 2)[1:] for line in lines if line.count(":") >= 2]
        free = []
        for controllers, name in groups:
            if controllers and "memory" not in controllers.split(","):
                continue
            top = root / "memory" if controllers else root
            folder = top / name.lstrip("/")
            # A container may see its own group as the top, by a name that it does not know.
            around = {top, folder, *(one for one in folder.parents if one.is_relative_to(top))}
            free += [_free_in(one, files) for one in sorted(around) for files in GROUP_FILES]
    except OSError:  # no such thing here
        return []
    return [number for number in free if number is not None]


def _free_in(folder: Path, names: tuple[str, str, str]) -> int | None:
    """The limit of a control group less its use; None where it has none."""
    limit, use, cache = names
    text = (folder / limit).read_text(encoding="ascii") if (folder / limit).exists() else "max"
    if not text.strip().isdigit():
        return None
    used = int((folder / use).read_text(encoding="ascii")) if (folder / use).exists() else 0
    if (folder / "memory.stat").exists():
        stat = dict(line.split() for line in (folder / "memory.stat").open(encoding="ascii"))
        used -= int(stat.get(cache, 0))
    return max(0, int(text) - max(0, used))


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
    return {
        "seconds": now()[0] - began[0],
        "core_seconds": now()[1] - began[1],
        "peak_megabytes": round(_peak_kilobytes() / 1024),
        "device": device,
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": core_count(),
        "versions": versions(),
    }


def _peak_kilobytes() -> int:
    """Of this program alone: on Linux, `ru_maxrss` keeps what the process that started it took."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    own = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return own[0] if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
