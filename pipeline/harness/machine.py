"""The machine's cores, memory and disks for this process; versions of libraries."""

import platform
import re
import socket
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

LIBRARIES = (
    *("numpy", "scipy", "numba", "scikit-learn", "scikit-optimize", "torch"),
    *("torchvision", "timm", "transformers", "datasets"),
    *("probmetrics", "betacal", "venn-abers", "cir-model"),
)
CONTROL_GROUPS = Path("/sys/fs/cgroup")  # they limit the memory of containers and of Slurm's jobs
OUTPUTS = ("data", "results", *(f"data/{stage}" for stage in ("logits", "fits", "scores")))
OUT_OF_MEMORY = re.compile(
    "(out of|not enough|can't allocate) memory|ALLOC(ATION)?_FAILED|CUBLAS_STATUS_NOT_INITIALIZED"
)
"""In torch's errors where memory is short. The last one: cuBLAS got no workspace."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, of the GPU or of the machine, was too small."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and bool(OUT_OF_MEMORY.search(str(error)))


def links() -> list[str]:
    """A line about each folder of outputs that is a symbolic link."""
    message = "is a symbolic link, which DVC does not follow"
    fix = "remove the link and put the whole project on the large disk (docs/reproduce.md)"
    return [f"{name} {message}; {fix}" for name in OUTPUTS if Path(name).is_symlink()]


def core_count() -> int:
    """Cores that this process may use, by affinity, control group or LOKY_MAX_CPU_COUNT."""
    import joblib

    return int(joblib.cpu_count())


def free_memory(group: Path | None = None) -> int:
    """Free bytes for this process and its children, of the machine or of its control group."""
    free = _free_on_machine()
    if group is None:
        file = Path("/proc/self/cgroup")
        text = file.read_text() if file.exists() else ""
        group = CONTROL_GROUPS / text.rpartition("0::/")[2].strip()
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # there is no limit here
            limit = int((folder / "memory.max").read_text())
            used = int((folder / "memory.current").read_text())
            statistics = dict(map(str.split, (folder / "memory.stat").read_text().splitlines()))
            # The system frees cached files where memory is short.
            cached_files = int(statistics["inactive_file"])
            free = min(free, max(0, limit - used + cached_files))
    return free


def _free_on_machine() -> int:
    """Free bytes of the machine. Linux says them in a file, and importing psutil takes .1 s."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    import psutil  # type: ignore[import-untyped]

    return int(psutil.virtual_memory().available)


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the installed libraries that results depend on."""
    from importlib.metadata import PackageNotFoundError, version  # status does without it

    installed = {"python": platform.python_version()}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            installed[library] = version(library)
    return installed


def run_notes() -> dict[str, Any]:
    """The log's entries about a run; `memory_mib` is this process's largest, so far."""
    if platform.system() == "Windows":
        import psutil

        peak = int(psutil.Process().memory_info().peak_wset)
    else:
        import resource

        per_unit = 1 if platform.system() == "Darwin" else 1024  # macOS: bytes, Linux: KiB
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * per_unit
    return {
        "memory_mib": round(peak / 2**20),
        "host": socket.gethostname(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
