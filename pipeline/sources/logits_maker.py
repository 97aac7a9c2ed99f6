"""Make a benchmark's logits: by its source, or from ready-made ones, and check them.

The logits stage (pipeline/logits.py) calls `made` where the cached logits are not up to date.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate

from utility_calibration.metrics.errors import InputError

from ..harness.artifacts import read_npz, save_npz
from ..harness.cache import Record, Save, record_of
from ..harness.machine import versions
from ..harness.parameters import UsageError
from ..harness.progress import say
from ..harness.settings import Settings
from ..harness.task import Progress
from ..precision import in_float32
from ..scoring.points import logits_path
from .input_digests import class_count, ready_made
from .source_result import SourceResult

ACCURACY_TOLERANCE = 0.3
"""Percentage points. A larger gap between our accuracy and the published one gives a warning."""
WRONG_ACCURACY = 1.0
"""Percentage points. Ready-made logits with a larger gap are taken for those of another model."""
GO_ON = "to take them all the same: paths.check_precomputed=false"


def _sizes_of_parts(tested: Any) -> list[dict[str, int]]:
    """For each split [n] how many points calibrate and how many test."""
    sizes = []
    for is_test in tested:
        n_test = int(is_test.sum())
        sizes.append({"calibration": len(is_test) - n_test, "test": n_test})
    return sizes


OF_POINTS: dict[str, Callable[[Any], Any]] = {
    "groups": lambda names: dict(sorted(Counter(names.tolist()).items())),
    "clusters": lambda names: len(set(names.tolist())),
    "weights": lambda weights: [float(weights.min()), float(weights.max())],
    "tested": _sizes_of_parts,
}
"""How the record summarises each optional array of a source."""


def made(settings: Settings, inputs: Record, progress: Progress) -> tuple[Save, Record]:
    """Run the source; if only the similarity changed, keep the logits."""
    benchmark, path = settings.benchmark, logits_path(settings)
    # The similarity comes first: if its word vectors are missing, no time goes into a forward pass.
    similarity = instantiate(benchmark.similarity, _convert_="all")
    if similarity is not None:
        _check_size(similarity[0], class_count(benchmark.source))
    record = record_of(path) or {}
    is_same = record.get("made_from") == inputs["made_from"] and "details" in record
    if is_same and not settings.force:
        arrays, details = dict(read_npz(path)), dict(record["details"])
        arrays.pop("similarity", None)
        details.pop("similarity", None)
    else:
        arrays, details = _computed(settings, progress)
    if similarity is not None:
        _check_size(similarity[0], details["classes"])
        from ..own.request.similarity import in_order

        arrays["similarity"], details["similarity"] = in_order(similarity, details)
        line = details["similarity"].get("line")
        if line:
            say(f"{benchmark.name}: {line}")
    return partial(save_npz, arrays=arrays), {**inputs, "details": details}


def _check_size(similarity: Any, classes: int | None) -> None:
    if classes is not None and len(similarity) != classes:
        message = f"it is of {len(similarity)} classes, the logits are of {classes}"
        fix = "correct its class_names or path, or set benchmark.similarity=null"
        raise UsageError(f"benchmark.similarity: {message}; {fix}")


def _computed(settings: Settings, progress: Progress) -> tuple[dict[str, Any], Record]:
    """The checked arrays of the source, and the record's details about them."""
    from utility_calibration.metrics.validation import check_labels, check_logits

    benchmark = settings.benchmark
    result = _result(settings, progress)
    check_logits(result.logits, name=f"{benchmark.name}: logits")
    n_points, n_classes = result.logits.shape
    check_labels(result.labels, n_points, n_classes, name=f"{benchmark.name}: labels")
    accuracy = _accuracy(result)
    warnings = list(result.details.get("warnings", []))
    tolerance = ACCURACY_TOLERANCE
    if benchmark.rows is not None:
        warnings.append(f"{n_points} rows, drawn at random (benchmark.rows={benchmark.rows})")
        tolerance = max(tolerance, 1.5 * two_standard_errors(accuracy, n_points))
    published = benchmark.published_accuracy
    if published is not None and abs(accuracy - published) > tolerance:
        warnings.append(f"accuracy {accuracy:.2f} %, published {published:.2f} %")
    for warning in warnings:
        say(f"{benchmark.name}: {warning}")
    details = dict(result.details)
    if benchmark.rows is not None:
        details["rows"] = benchmark.rows
    counts = np.bincount(result.labels, minlength=n_classes)
    rarest = int(counts.argmin())
    names = result.details.get("class_names") or [f"class {k}" for k in range(n_classes)]
    chance = 1 / n_classes
    details |= {
        "n": n_points,
        "classes": n_classes,
        "rarest_class": int(counts[rarest]),
        "rarest_class_name": str(names[rarest]),
        "accuracy": accuracy,
        "below_chance": accuracy / 100 < chance - 2 * math.sqrt(chance * (1 - chance) / n_points),
        "published_accuracy": published,
        "warnings": warnings,
        "versions": versions(),
    }
    # Logits in float32 are not copied: they may be mapped from a large file.
    logits = in_float32(result.logits)
    arrays: dict[str, Any] = {"logits": logits, "labels": result.labels.astype(np.int64)}
    for kind, summary in OF_POINTS.items():
        values = getattr(result, kind)
        if values is not None:
            arrays[kind] = values
            details["given_splits" if kind == "tested" else kind] = summary(values)
    return arrays, details


def _result(settings: Settings, progress: Progress) -> SourceResult:
    """What the source gives, or ready-made logits, which are compared with the configuration."""
    ready = ready_made(settings)
    if ready is None:
        result = from_source(settings, progress)
    else:
        is_checked = settings.paths.check_precomputed
        result = _taken(ready, is_checked)
        if is_checked:
            _check_ready_made(result, settings, ready)
    if settings.benchmark.rows is None:
        return result
    return result.part(settings.benchmark.rows)  # a forward pass has drawn them before it


def _accuracy(result: SourceResult) -> float:
    """In per cent."""
    return 100 * float(np.mean(result.logits.argmax(axis=1) == result.labels))


def _check_ready_made(result: SourceResult, settings: Settings, path: Path) -> None:
    """Compare ready-made logits with what the configuration says of the benchmark.

    Raises:
        InputError: other numbers of points or classes, or another accuracy; it says all of them.
    """
    benchmark = settings.benchmark
    n_points, n_classes = result.logits.shape
    expected_classes = class_count(benchmark.source)
    mistakes = []
    if benchmark.points not in (None, n_points):
        message = f"{n_points} points, the benchmark has {benchmark.points}"
        mistakes.append(InputError(message, field="labels"))
    if expected_classes not in (None, n_classes):
        message = f"{n_classes} classes, the benchmark has {expected_classes}"
        mistakes.append(InputError(message, field="logits"))
    published = benchmark.published_accuracy
    if published is not None:
        accuracy = _accuracy(result)
        if abs(accuracy - published) > WRONG_ACCURACY:
            message = f"accuracy {accuracy:.2f} %, published {published:.2f} %"
            mistakes.append(InputError(message, field="labels"))
    if mistakes:
        fix = f"give the logits of {benchmark.name} ({benchmark.title})"
        mistakes[-1].fixes = (fix, GO_ON)
        raise InputError.of_all([mistake.in_file(path) for mistake in mistakes])


def two_standard_errors(accuracy: float, n: int) -> float:
    """Two binomial standard errors of an accuracy in percent, of n points."""
    return 2 * math.sqrt(accuracy * (100 - accuracy) / n)


def from_source(settings: Settings, progress: Progress) -> SourceResult:
    """Run the benchmark's source; say first where a folder of ready-made logits lacks them."""
    folder = settings.paths.precomputed
    if folder:
        file_names = sorted(path.name for path in Path(folder).expanduser().glob("*.npz"))
        listed = ", ".join(file_names[:5]) + (", ..." if len(file_names) > 5 else "")
        name = f"{settings.benchmark.precomputed}.npz"
        say(f"no {name} in {folder} (it has {listed or 'no npz file'}); computing")
    # A person's texts, such as a path, may hold `${` or be `???`, which Hydra would resolve.
    texts: dict[str, str] = {}
    others: dict[str, Any] = {}
    for key, value in settings.benchmark.source.items():
        if isinstance(value, str) and not key.startswith("_"):
            texts[key] = value
        else:
            others[key] = value
    source = instantiate(others, _convert_="all", _partial_=True)
    expected = signature(source.func)
    # A source gets of these what it has an argument for.
    work = {
        "device": settings.sources.device,
        "progress": progress,
        "rows": settings.benchmark.rows,
    }
    options = {key: value for key, value in work.items() if key in expected.parameters} | texts
    try:
        expected.bind(**source.keywords, **options)
    except TypeError as error:
        raise UsageError(f"benchmark.source: {error}") from error
    result = source(**options)
    assert isinstance(result, SourceResult)
    return result


def _taken(path: Path, is_checked: bool) -> SourceResult:
    """Ready-made logits, with the first sentence of the README beside them as their origin.

    is_checked: refuse an array of logits that looks like probabilities, as `score` does.
    """
    from .file import file_logits

    readme = path.with_name("README.md")
    try:
        result = file_logits(path=path, values="auto" if is_checked else "logits")
    except InputError as error:
        # A fix of `score` is an option, in whose place there is a setting here.
        fixes = [fix for fix in error.fixes if "--values" not in fix]
        if len(fixes) < len(error.fixes):
            error.fixes = (*fixes, GO_ON)
        raise
    origin = {**result.details["origin"], "precomputed": True}
    if readme.is_file():
        lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
        prose = [line for line in lines if line and not line.startswith(("#", "|"))]
        origin |= {"readme": readme.name, "readme_says": prose[0][:500] if prose else ""}
    return replace(result, details={**result.details, "origin": origin})
