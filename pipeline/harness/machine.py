"""The machine's cores, memory and devices for this process, and the versions of libraries."""

from __future__ import annotations

import platform
import resource
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("numpy", "scipy", "numba", "scikit-learn", "scikit-optimize", "torch"),
    *("torchvision", "timm", "transformers", "datasets"),
    *("probmetrics", "betacal", "venn-abers", "cir-model"),
)
CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Containers and Slurm limit the memory by control groups (version 2)."""


class MissingDevice(RuntimeError):
    """A device that is not there. One line."""


def device_name(device: str) -> str:
    """`auto` becomes cuda where there is a GPU, else cpu.

    Raises:
        MissingDevice: a GPU that is not there.
    """
    if device == "cpu":  # no need to load torch
        return device
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not torch.cuda.is_available():
        raise MissingDevice(
            f"device={device}: torch {torch.__version__} sees no CUDA GPU; "
            "set device=cpu, or install a CUDA build of torch on a machine with a GPU"
        )
    return device


def core_count() -> int:
    """Cores that this process may use, by affinity, control group or LOKY_MAX_CPU_COUNT."""
    import joblib

    return int(joblib.cpu_count())


def free_memory(group: Path | None = None) -> int:
    """Free bytes for this process and its children, of the machine or of its control group.

    Args:
        group: a folder below CONTROL_GROUPS; None means that of this process.
    """
    import psutil  # type: ignore[import-untyped]  # `status` does not need it

    free = int(psutil.virtual_memory().available)
    group = group or _control_group()
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # there is no limit here
            limit, used = (int((folder / f"memory.{k}").read_text()) for k in ("max", "current"))
            lines = (folder / "memory.stat").read_text().splitlines()
            files = int(dict(line.split() for line in lines)["inactive_file"])
            free = min(free, max(0, limit - used + files))  # the system frees cached files
    return free


def _control_group() -> Path:
    listed = Path("/proc/self/cgroup")
    text = listed.read_text() if listed.exists() else ""
    return CONTROL_GROUPS / text.rpartition("0::/")[2].strip()


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the installed libraries that results depend on."""
    installed = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            installed[library] = version(library)
        except PackageNotFoundError:
            continue
    return installed


def run_notes() -> dict[str, Any]:
    """The log's entries about the run of a unit, except for its seconds.

    `memory_mib` is this process's largest resident memory so far, earlier units included.
    """
    per_mib = 1024 * 1024 if sys.platform == "darwin" else 1024  # macOS: bytes, Linux: KiB
    return {
        "memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mib),
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
