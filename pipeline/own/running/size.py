"""Whether a user's file fits into the free memory, before anything is computed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hydra.utils import get_class

from utility_calibration.metrics.archive import array_headers, array_names
from utility_calibration.metrics.errors import InputError

from ...harness.machine import free_memory
from ...harness.settings import Settings
from ..reading.read import SAVE
from ..words.file_options import FileOptions
from ..words.forms import check_is_npz

BYTES_PER_LOGIT = 80
"""Of a whole run; measured: 59 to 76 with 40,000 points of 200 classes."""
BYTES_MAPPED = 8
"""The same of many points that stay in their file, with methods that need little."""
MANY = 100_000
"""Points from which on scoring keeps no predictions and orders of the test points."""


class _Matrix(NamedTuple):
    """The matrix of answers of an npz, by its header."""

    stays: bool
    """Whether it can stay in its file while it is used."""
    rows: int
    classes: int


def check_fits(path: Path, methods: Mapping[str, Settings]) -> None:
    """Refuse an npz that needs more memory than is free; `methods`: their settings by name.

    A table has a limit of its own. InputError says how many bytes are needed and how many are free.
    """
    first = next(iter(methods.values()))
    source = first.benchmark.source
    file_options = FileOptions(**{name: source[name] for name in vars(FileOptions())})
    files = [path] if source["test"] is None else [path, Path(source["test"])]
    matrices = list(filter(None, (_matrix_of(file, file_options) for file in files)))
    if not matrices:
        return  # the reader will say what is wrong
    points = sum(matrix.rows for matrix in matrices)
    classes = matrices[0].classes
    is_mapped = points > MANY and all(matrix.stays for matrix in matrices)
    little = [name for name, settings in methods.items() if _needs_little(settings)]
    needs_little = is_mapped and len(little) == len(methods)
    needed = points * classes * (BYTES_MAPPED if needs_little else BYTES_PER_LOGIT)
    free = free_memory()
    if needed <= free:
        return
    message = f"{points:,} rows of {classes:,} classes need about {needed:,} bytes"
    fixes = ["give fewer rows", "--stream", "a machine with more memory"]
    if is_mapped and little and not needs_little:
        fixes.insert(0, f"--methods {' '.join(little)}")
    raise InputError(f"{message} of memory, and {free:,} are free", file=path, fixes=fixes)


def _needs_little(settings: Settings) -> bool:
    kind: Any = get_class(settings.calibrator["_target_"])
    return bool(kind.needs_little_memory)


def _matrix_of(path: Path, file_options: FileOptions) -> _Matrix | None:
    """The npz's matrix of answers, if it has one."""
    check_is_npz(path)
    kinds = file_options.kinds_of(array_names(path))
    names = [
        name for name, kind in kinds.items() if not kind or file_options.values in ("auto", kind)
    ]
    for name, header in array_headers(path, only=names[:1], fix=SAVE).items():
        if len(header.shape) == 2:
            are_logits = "logits" in (file_options.values, kinds[name])
            stays = are_logits and header.can_be_mapped and header.dtype == "float32"
            return _Matrix(stays, *header.shape)
    return None
