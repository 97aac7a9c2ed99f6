"""Whether a user's file fits into the free memory, before anything is computed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.utils import get_class

from utility_calibration.metrics.archive import array_headers, array_names
from utility_calibration.metrics.errors import InputError

from ..harness.machine import free_memory
from ..harness.settings import Settings
from .choices import Choices
from .read import SAVE

BYTES_PER_LOGIT = 80  # of a whole run; measured: 59 to 76 with 40,000 points of 200 classes
BYTES_MAPPED = 8  # the same of many points that stay in their file, with methods that need little
MANY = 100_000  # points from which on scoring keeps no predictions and orders of the test points


def check_fits(path: Path, methods: Mapping[str, Settings]) -> None:
    """Refuse an npz that needs more memory than is free; `methods`: their settings by name.

    A table has a limit of its own. InputError says how many bytes are needed and how many are free.
    """
    first = next(iter(methods.values()))
    source = first.benchmark.source
    choices = Choices(**{name: source[name] for name in vars(Choices())})
    files = [path] if source["test"] is None else [path, Path(source["test"])]
    answers = [answer for file in files for answer in _answers(file, choices)]
    if not answers:
        return  # the reader will say what is wrong
    points = sum(rows for _, (rows, _) in answers)
    classes = answers[0][1][1]
    is_mapped = points > MANY and all(stays for stays, _ in answers)
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


def _answers(path: Path, choices: Choices) -> list[tuple[bool, tuple[int, int]]]:
    """Whether the npz's matrix of answers can stay in its file, and the shape (n, C), if any."""
    kinds = choices.kinds_of(array_names(path))
    names = [name for name, kind in kinds.items() if not kind or choices.values in ("auto", kind)]
    answers = []
    for name, header in array_headers(path, only=names[:1], fix=SAVE).items():
        if len(header.shape) == 2:
            are_logits = "logits" in (choices.values, kinds[name])
            stays = are_logits and header.can_be_mapped and header.dtype == "float32"
            answers.append((stays, header.shape))
    return answers
