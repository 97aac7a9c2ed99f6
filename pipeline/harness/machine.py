"""Where and with what a result was made: what differs between two runs that agree."""

from __future__ import annotations

import os
import platform
import resource
import socket
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
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise MissingDevice(
            f"device={device}: torch {torch.__version__} sees no CUDA GPU; "
            "set device=cpu, or install a CUDA build of torch on a machine with a GPU"
        )
    try:
        return str(torch.device(device))
    except RuntimeError as error:
        raise MissingDevice(f"device={device}: choose auto, cpu, cuda or cuda:<k>") from error


def core_count() -> int:
    """Cores this process may use, which a scheduler may have made fewer than the machine has."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    asked = os.environ.get("SLURM_CPUS_PER_TASK", "")  # where Slurm counts cores and binds none
    return min(cores, int(asked)) if asked.isdigit() else cores


def free_memory() -> int:
    """Bytes that this process and its children may take: of the machine, or of its control group.

    Containers and Slurm limit the memory by a control group (version 2).
    """
    import psutil  # type: ignore[import-untyped]  # `status` has no use for it

    free = int(psutil.virtual_memory().available)
    for folder in _control_groups():
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        if limit.isdigit():
            used = int((folder / "memory.current").read_text(encoding="ascii"))
            lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
            cache = dict(line.split() for line in lines).get("inactive_file", 0)
            free = min(free, max(0, int(limit) - used + int(cache)))
    return free


def _control_groups(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> list[Path]:
    """The folders of this process's control group and of those around it that limit memory."""
    lines = own.read_text().splitlines() if own.exists() else []
    names = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    around = {root, *(root / name for name in names)}
    around |= {up for one in around for up in one.parents if up.is_relative_to(root)}
    return [folder for folder in sorted(around) if (folder / "memory.max").is_file()]


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


def run_notes() -> dict[str, Any]:
    """What a unit notes of its run besides its seconds, in a log that nobody commits.

    `memory_mib` is this process's largest resident memory so far, earlier units included.
    """
    return {
        "memory_mib": round(_peak_kilobytes() / 1024),
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
