"""Whether a person's npz fits into the free memory, which is said before anything is computed."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.utils import get_class

from utility_calibration.metrics.archive import array_headers, array_names
from utility_calibration.metrics.errors import InputError

from ...harness.machine import free_memory
from ...harness.settings import Settings
from ..reading.read import SAVE
from ..words.file_options import FileOptions
from ..words.forms import check_is_npz

BYTES_PER_LOGIT = 80
"""Of a whole run; measured: 52 to 76 with 20,000 and 40,000 points of 200 classes."""


def check_fits(path: Path, methods: Mapping[str, Settings]) -> None:
    """Refuse an npz that needs more memory than is free; `methods`: their settings by name.

    A table has a limit of its own. InputError says how many bytes are needed and how many are free.
    """
    little = [name for name, settings in methods.items() if _needs_little(settings)]
    if len(little) == len(methods):
        return  # they work on parts of a large file
    source = next(iter(methods.values())).benchmark.source
    file_options = FileOptions(**{name: source[name] for name in vars(FileOptions())})
    files = [path] if source["test"] is None else [path, Path(source["test"])]
    n_logits = sum(_largest(file, file_options) for file in files)
    needed, free = n_logits * BYTES_PER_LOGIT, free_memory()
    if needed <= free:
        return
    message = f"{n_logits:,} numbers need about {needed:,} bytes of memory, and {free:,} are free"
    fixes = ["give fewer cases", "--stream", "a machine with more memory"]
    if little:
        fixes.insert(0, f"--methods {' '.join(little)}")
    raise InputError(message, file=path, fixes=fixes)


def _needs_little(settings: Settings) -> bool:
    kind: Any = get_class(settings.calibrator["_target_"])
    return bool(kind.needs_little_memory)


def _largest(path: Path, file_options: FileOptions) -> int:
    """The count of numbers in the largest array of answers; 0: the reader says what is wrong."""
    check_is_npz(path)
    names = list(file_options.kinds_of(array_names(path)))
    headers = array_headers(path, only=names, fix=SAVE)
    return max((math.prod(header.shape) for header in headers.values()), default=0)
