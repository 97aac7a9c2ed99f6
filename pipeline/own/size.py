"""What a user's file takes, memory and time, before anything is computed.

Logits stay in the file if it can be mapped. Scaling holds the calibration points' logits in
float32. Scoring holds the test points' probabilities in float64, and numbers computed from them.
Both are rules, measured with 500 to 1,000,000 points of 10 to 20,000 classes.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.utils import get_class

from utility_calibration.metrics.archive import Stored, array_headers, array_names
from utility_calibration.metrics.forecast import LARGEST_WHOLE, MOST_POINTS
from utility_calibration.metrics.option_checks import USUAL_CONFIDENCE, draws_for
from utility_calibration.metrics.validation import InputError

from ..harness.machine import free_memory
from ..harness.parallel import BYTES_PER_LOGIT
from ..harness.settings import Settings
from .choices import Choices
from .read import SAVE

BASE = 1 << 30  # bytes of libraries and of all else that does not grow with points and classes
SMALL = 1 << 26  # up to this number of logits, any machine has enough memory
PER_TEST_PROBABILITY = 11  # bytes: 8 for float64, 2 for its rank, the rest for utilities
KEPT = 73  # bytes per test probability of few points, whose predictions and orders are kept
GENERAL = 40  # bytes per test probability for a utility with a vector for each point, and its draws
READ_WHOLE = 32  # bytes per entry while probabilities, or an array that cannot be mapped, are read
MOST_DRAWN = 40_000_000  # labels redrawn for the floors (points x vectors); more takes long
FEWEST_DRAWS = 100  # label vectors at least, because the 95 % quantile needs them
LONG, MUCH = 60, 2_000_000_000  # core seconds, bytes from which on a run says what it takes
FITS = {
    "uncalibrated": (0, 2e-8),
    "temperature": (0, 1e-7),
    "isotonic": (0, 3e-7),
    "vector": (0, 4e-7),
    "structured_vector": (0, 6e-7),
    "structured_matrix": (0, 2e-6),
    "dirichlet": (0, 3e-6),
    "logit_shift": (1e-4, 1e-5),
    "patching": (4e-4, 5e-6),
}
"""Core seconds of a fit for each of its points, and for each of their logits."""
START = 10  # core seconds to load libraries, to read the file, and to write the report
PER_REDRAWN, PER_WEIGHTED, PER_SORTED = 3e-9, 7e-10, 5e-8
"""Core seconds for each utility and test point: of a redrawn label, a set of weights, and once."""


def core_seconds(methods: Mapping[str, Settings], n: int, classes: int) -> float:
    """The time of a run with these methods, their settings by name, on n points."""
    total = float(START)
    for name, settings in methods.items():
        splits, of = settings.splits, settings.evaluation
        calibrating = splits.calibration_fraction * n
        per_point, per_logit = FITS.get(name, FITS["patching"])
        utilities = 2 * (classes + of.floor_utilities)
        work = PER_REDRAWN * of.floor_repetitions + PER_SORTED
        work += PER_WEIGHTED * (of.bootstrap_repetitions + draws_for(USUAL_CONFIDENCE))
        if n - calibrating > MOST_POINTS:
            work *= 4  # orders are not kept, and their rows leave the cache
        fit = calibrating * (per_point + per_logit * classes)
        total += splits.count * (fit + (n - calibrating) * utilities * work)
    return total


def affordable_draws(settings: Settings, details: Mapping[str, Any]) -> int:
    """Number of redrawn label vectors behind the noise floors; fewer for many points."""
    share = 1 - settings.splits.calibration_fraction
    sizes = [split["test"] for split in details.get("given_splits", [])]
    test = max(sizes, default=max(1, round(share * details["n"])))
    return min(settings.evaluation.floor_repetitions, max(FEWEST_DRAWS, MOST_DRAWN // test))


def _answers(path: Path, said: Choices) -> list[tuple[str, Stored]]:
    """The name of an npz's array of answers, and what the npz says of it, if it is [n, C]."""
    kinds = said.kinds_of(array_names(path)).items()
    fitting = [name for name, kind in kinds if not kind or said.values in ("auto", kind)]
    held = array_headers(path, only=fitting[:1], fix=SAVE).items()
    return [(name, matrix) for name, matrix in held if len(matrix.shape) == 2]


def memory(
    methods: Mapping[str, Settings],
    n: int,
    test: int,
    classes: int,
    *,
    is_read: bool,
    has_groups: bool,
    general: bool,
) -> dict[str, int]:
    """The bytes that a run takes with each method on n points, of which `test` are in a test part.

    `is_read`: the file cannot be mapped. `general`: a similarity is scored, or an own utility that
    is no payoff per class or rank.
    """
    is_kept = test <= MOST_POINTS and test * classes <= LARGEST_WHOLE
    each = PER_TEST_PROBABILITY * (1 + has_groups) + GENERAL * general + KEPT * is_kept
    scaling = max(READ_WHOLE * n * is_read, 4 * (n - test), each * test)
    needed = {}
    for name, settings in methods.items():
        kind: Any = get_class(settings.calibrator["_target_"])
        most = scaling if kind.needs_little_memory else max(scaling, BYTES_PER_LOGIT * n)
        processes = int(settings.jobs) if str(settings.jobs).isdecimal() else 1
        needed[name] = processes * (BASE + classes * most)
    return needed


def long_run(methods: Mapping[str, Settings], n: int, test: int, classes: int, **kind: bool) -> str:
    """The time and memory of a large run, in words, "" of a small one; arguments as of `memory`."""
    seconds = core_seconds(methods, n, classes)
    most = max(memory(methods, n, test, classes, **kind).values())
    if seconds < LONG and most < MUCH:
        return ""
    minutes, splits = max(1, math.ceil(seconds / 60)), next(iter(methods.values())).splits.count
    return (
        f"about {minutes} core minute{'s' * (minutes > 1)} and {most / 1e9:.1f} GB of memory for "
        f"{len(methods)} methods and {splits} split{'s' * (splits > 1)}"
    )


def check_fits(path: Path, methods: Mapping[str, Settings], general: bool = False) -> None:
    """Refuse an npz that needs too much memory with one of `methods`, their settings by name.

    A small file passes; a table is not for here, because its reader has a limit. InputError has the
    bytes needed and free, and the methods that fit.
    """
    first = next(iter(methods.values()))
    source = first.benchmark.source
    files = [Path(file) for file in (path, source["test"]) if file is not None]
    said = Choices(**{name: source[name] for name in vars(Choices())})
    answers = [found for file in files for found in _answers(file, said)]
    shapes = [matrix.shape for _, matrix in answers]
    if len(shapes) < len(files):
        return  # the reader will say what is wrong
    n, classes, names = sum(shape[0] for shape in shapes), shapes[0][1], {*array_names(path)}
    if n * classes <= SMALL:
        return
    test = round((1 - first.splits.calibration_fraction) * n)
    if len(shapes) == 2:
        test = shapes[1][0]
    elif {"split", "split_1"} & names:
        test = n  # they say which points test; it may be nearly all
    name, matrix = answers[0]
    are_logits = len(files) == 1 and "logits" in (said.values, said.kinds_of([name])[name])
    is_mapped = are_logits and matrix.can_be_mapped and matrix.dtype == "float32"
    has_groups, free = (said.groups or "groups") in names, free_memory()
    kind = {"is_read": not is_mapped, "has_groups": has_groups, "general": general}
    needed = memory(methods, n, test, classes, **kind)
    fitting = {name: most for name, most in needed.items() if most <= free}
    too_large = [name for name in needed if name not in fitting]
    most = max(fitting.values(), default=0)
    fixes = [f"--methods {' '.join(fitting)} ({most:,} bytes)"] if fitting else []
    fewer = f"{'--jobs 1, ' * (first.jobs not in (1, '1', 'auto'))}give fewer rows"
    if too_large:
        told = f"{n:,} rows of {classes:,} classes take {max(needed.values()):,} bytes of memory "
        told += f"for {', '.join(too_large)}, {free:,} are free"
        raise InputError(told, file=path, fixes=[*fixes, fewer, "a machine with more"])
