"""Whether a person's file fits into the memory: told before anything is read or written.

What is held at once, by the largest arrays. Logits stay in the file where it can be mapped. Fitting
takes the calibration points' logits, in float32; scoring the test points' probabilities, in
float64, with the classes' order, labels and ranks of all draws of the noise floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metrics.archive import Stored, array_headers
from metrics.validation import InputError
from pipeline.harness.machine import free_memory
from pipeline.harness.parallel import BYTES_PER_LOGIT
from pipeline.harness.units import Settings
from pipeline.sources.npz_arrays import MATRICES, SAVE
from pipeline.sources.tables import TABLES

SCALING = ("Uncalibrated", "TemperatureScaling", "VectorScaling")
"""Calibrators that take little besides their points' logits."""
BASE = 5 << 28
"""Bytes of libraries, and of what does not grow with the number of points and classes."""
SMALL = 1 << 26
"""Logits of which any machine has room for all that is made of them."""
PER_TEST_PROBABILITY = 11
"""Bytes: float64, its place among the classes in two, and predictions of some utilities."""
PER_DRAWN_LABEL = 16
"""Bytes: label and rank in two each, again in the order of the points, and what is unusual."""
GENERAL = 40
"""Bytes per test probability of a utility given by a vector for each point, and its draws."""
MOST_DRAWN = 40_000_000
"""Labels redrawn for the floors, points x vectors; more would take most of the time."""
FEWEST_DRAWS = 100
"""Vectors, however many points: the 95 % quantile needs them."""
SPLITS = ("split", "split_1")
"""Arrays that say which points calibrate and test."""
NOTHING = Stored((), np.dtype(float), False)
READ_WHOLE = 32
"""Bytes per entry of probabilities, or of an array that cannot be mapped, while it is read."""


@dataclass(frozen=True)
class Size:
    """What the memory depends on besides the method."""

    n: int
    classes: int
    calibration: int
    test: int
    draws: int
    mapped: bool
    """Whether the logits stay in the file."""
    general: bool
    """Whether a similarity or a utility of one's own is scored."""
    grouped: bool

    def bytes_of(self, target: str) -> int:
        """What the calibrator of a configuration's `_target_` takes at most."""
        logits = self.n * self.classes
        if target.rpartition(".")[2] not in SCALING:
            return BASE + BYTES_PER_LOGIT * logits
        test = self.test * self.classes
        scoring = (PER_TEST_PROBABILITY * (1 + self.grouped) + GENERAL * self.general) * test
        scoring += PER_DRAWN_LABEL * self.draws * self.test
        reading = 0 if self.mapped else READ_WHOLE * logits
        return BASE + max(reading, 4 * self.calibration * self.classes, scoring)


def affordable_draws(path: Path, settings: Settings) -> int:
    """Redrawn label vectors behind the noise floors: fewer than the settings' for many points."""
    size = _size(path, settings)
    asked = int(settings["evaluation"]["floor_repetitions"])
    return asked if size is None else min(asked, max(FEWEST_DRAWS, MOST_DRAWN // size.test))


def check_fits(path: Path, methods: Mapping[str, Settings], general: bool = False) -> None:
    """Refuse an npz that does not fit with some of `methods`, their settings by name.

    Tables and small files pass: their readers bound what they take. `general`: a similarity is
    scored, or a utility of one's own that is no payoff per class or rank.

    Raises:
        InputError: one line with the bytes that it would take, those that are free, and the fix.
    """
    first = next(iter(methods.values()))
    size = _size(path, first, general)
    if size is None or size.n * size.classes <= SMALL:
        return
    jobs = str(first["jobs"])
    processes = int(jobs) if jobs.isdecimal() else 1
    needed = {
        name: processes * size.bytes_of(settings["calibrator"]["_target_"])
        for name, settings in methods.items()
    }
    free = free_memory()
    too_large = [name for name, most in needed.items() if most > free]
    if not too_large:
        return
    fitting = {name: most for name, most in needed.items() if most <= free}
    fix = "give fewer rows, or a machine with more"
    if processes > 1:
        fix = f"--jobs 1, {fix}"
    if fitting:
        fix = f"--methods {' '.join(fitting)} ({max(fitting.values()):,} bytes), or {fix}"
    raise InputError(
        f"{path}: {size.n:,} rows of {size.classes:,} classes take "
        f"{max(needed[name] for name in too_large):,} bytes of memory for "
        f"{_listed(too_large)}, {free:,} are free; {fix}"
    )


def _size(path: Path, settings: Settings, general: bool = False) -> Size | None:
    """None of a table, and where the headers name no matrix: the reader says what is wrong."""
    source = settings["benchmark"]["source"]
    headers = [
        _headers(file, source["values"]) for file in (path, source["test"]) if file is not None
    ]
    matrices = [held["matrix"] for held in headers if len(held.get("matrix", NOTHING).shape) == 2]
    if len(matrices) < len(headers):
        return None
    n, classes = sum(matrix.shape[0] for matrix in matrices), matrices[0].shape[1]
    calibration = round(settings["splits"]["calibration_fraction"] * n)
    sides = calibration, n - calibration
    if len(matrices) == 2:
        sides = matrices[0].shape[0], matrices[1].shape[0]
    elif headers[0].keys() & SPLITS:  # either side may be the larger one
        sides = n, n
    is_logits = headers[0].get("logits") is matrices[0]
    return Size(
        n,
        classes,
        *sides,
        settings["evaluation"]["floor_repetitions"],
        mapped=len(matrices) == 1
        and is_logits
        and matrices[0].can_be_mapped
        and matrices[0].dtype == "float32",
        general=general,
        grouped="groups" in headers[0],
    )


def _headers(path: Path | str, values: str) -> dict[str, Stored]:
    """What an npz says of its arrays; `matrix` is the one that is read."""
    if Path(path).suffix.lower() in TABLES:
        return {}
    headers = array_headers(path, only=(*MATRICES, "groups", *SPLITS), fix=SAVE)
    wanted: Sequence[str] = MATRICES if values == "auto" else (values,)
    kind = next((name for name in wanted if name in headers), None)
    return headers if kind is None else {**headers, "matrix": headers[kind]}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
