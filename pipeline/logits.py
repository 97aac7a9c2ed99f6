"""Stage 1 of 6: the logits of each benchmark, from its source to data/logits/<benchmark>.npz.

utility-calibration logits benchmark=cifar10_resnet
utility-calibration logits suite=cifar paths.precomputed=/folder/with/npz/files
"""

import math
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError

from .harness.artifacts import CorruptFile, read_npz, save_npz
from .harness.cache import Record, Save, record_of
from .harness.command import command
from .harness.machine import versions
from .harness.parallel import Progress, run_tasks
from .harness.parameters import CONF, UsageError
from .harness.progress import say
from .harness.settings import Paths, Settings
from .harness.units import Request
from .harness.workers import UnitsFailed
from .plan import Plan, logits_step
from .precision import in_float32
from .scoring.points import logits_path
from .sources.input_digests import class_count, ready_made
from .sources.source_result import SourceResult

ACCURACY_TOLERANCE = 0.3
"""Percentage points. A larger gap between our accuracy and the published one gives a warning."""
WRONG_ACCURACY = 1.0
"""Percentage points. Ready-made logits with a larger gap are taken for those of another model."""
GO_ON = "to take them all the same: paths.check_precomputed=false"
OF_POINTS: dict[str, Callable[[Any], Any]] = {
    "groups": lambda names: dict(sorted(Counter(names.tolist()).items())),
    "clusters": lambda names: len(set(names.tolist())),
    "weights": lambda weights: [float(weights.min()), float(weights.max())],
    "tested": lambda rows: [{"calibration": int(np.sum(~t)), "test": int(t.sum())} for t in rows],
}
"""How the record summarises each optional array of a source."""


@command
def main(config: DictConfig) -> None:
    """Make the logits of the requested benchmarks."""
    run_logits(Plan(Request.from_hydra(config).units()))


def run_logits(plan: Plan) -> None:
    """Make the logits that are not up to date; UnitsFailed names those that failed, at the end."""
    for each in plan.settings.values():
        # A file of word vectors is checked at once, before images are counted and large files are
        # read. One that went away after the logits were made is not missed.
        named = (each.benchmark.similarity or {}).get("vectors_path")
        if named:
            path = Path(named).expanduser()
            if path.exists() or each.force or record_of(logits_path(each)) is None:
                from .sources.similarity import check_vectors

                check_vectors(path)
    if not skips_absent(plan):
        run_tasks("logits", list(plan.logits.values()), one_by_one=True)
        return
    failures = []
    for name, step in plan.logits.items():
        try:
            run_tasks("logits", [step], one_by_one=True)
        except UnitsFailed as error:
            if ready_made(plan.settings[name]):
                raise  # a file that is there and cannot be read is no absent one
            failures.append(f"{name}: {error}")
            say(f"{name} is left out: {error}")
    if len(failures) == len(plan.logits):
        raise UnitsFailed("; ".join(failures))


def skips_absent(plan: Plan) -> bool:
    """Whether the plan's suite leaves out benchmarks without logits; a single one always stays."""
    suite = next(iter(plan.settings.values())).suite
    return suite.skip_absent and len(plan.settings) > 1


def with_logits(plan: Plan) -> Plan:
    """The plan without the benchmarks that have no logits, if its suite leaves them out."""
    if not skips_absent(plan):
        return plan
    absent = [name for name, each in plan.settings.items() if not _has_logits(plan, name, each)]
    return left_out(plan, absent, "no logits")


def left_out(plan: Plan, absent: Collection[str], why: str) -> Plan:
    """The plan without the benchmarks `absent`, which are named; all of it, if none would stay."""
    if not absent or len(absent) == len(plan.settings):
        return plan
    say(f"left out, because there are {why}: {', '.join(absent)}")
    return Plan([unit for unit in plan.units if unit.benchmark not in absent])


def _has_logits(plan: Plan, name: str, settings: Settings) -> bool:
    """Whether a later stage finds logits of a benchmark, or takes them from another folder."""
    with suppress(CorruptFile):
        plan.found(name)
        return True
    usual = replace(settings, paths=_usual(settings))
    return ready_made(settings) is not None or logits_step(usual).is_current()


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
        from .own.similarity import in_order

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

    name, published = settings.benchmark.name, settings.benchmark.published_accuracy
    ready, rows = ready_made(settings), settings.benchmark.rows
    is_checked = ready is not None and settings.paths.check_precomputed
    result = _taken(ready, is_checked) if ready else from_source(settings, progress)
    if is_checked:
        _check_ready_made(result, settings, ready)
    if rows is not None:  # a source with a forward pass has drawn them before it
        result = result.part(rows)
    check_logits(result.logits, name=f"{name}: logits")
    n, classes = result.logits.shape
    check_labels(result.labels, n, classes, name=f"{name}: labels")
    accuracy = 100 * float(np.mean(result.logits.argmax(axis=1) == result.labels))
    warnings = list(result.details.get("warnings", []))
    tolerance = ACCURACY_TOLERANCE
    if rows is not None:
        warnings.append(f"{n} rows, drawn at random (benchmark.rows={rows})")
        tolerance = max(tolerance, 1.5 * two_standard_errors(accuracy, n))
    if published is not None and abs(accuracy - published) > tolerance:
        warnings.append(f"accuracy {accuracy:.2f} %, published {published:.2f} %")
    for warning in warnings:
        say(f"{name}: {warning}")
    # Logits in float32 are not copied: they may be mapped from a large file.
    logits = in_float32(result.logits)
    arrays: dict[str, Any] = {"logits": logits, "labels": result.labels.astype(np.int64)}
    chance = 1 / classes
    counts = np.bincount(result.labels, minlength=classes)
    rarest = int(counts.argmin())
    class_names = result.details.get("class_names") or [f"class {k}" for k in range(classes)]
    details = {
        **result.details,
        **({} if rows is None else {"rows": rows}),
        "n": n,
        "classes": classes,
        "rarest_class": int(counts[rarest]),
        "rarest_class_name": str(class_names[rarest]),
        "accuracy": accuracy,
        "below_chance": accuracy / 100 < chance - 2 * math.sqrt(chance * (1 - chance) / n),
        "published_accuracy": published,
        "warnings": warnings,
        "versions": versions(),
    }
    for kind, described in OF_POINTS.items():
        values = getattr(result, kind)
        if values is not None:
            key = "given_splits" if kind == "tested" else kind
            arrays[kind], details[key] = values, described(values)
    return arrays, details


def _check_ready_made(result: SourceResult, settings: Settings, path: Path | None) -> None:
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
        accuracy = 100 * float(np.mean(result.logits.argmax(axis=1) == result.labels))
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
    entry = settings.benchmark.source
    texts = {k: v for k, v in entry.items() if isinstance(v, str) and not k.startswith("_")}
    others = {key: value for key, value in entry.items() if key not in texts}
    source = instantiate(others, _convert_="all", _partial_=True)
    expected = signature(source.func)
    rows = settings.benchmark.rows
    work = {"device": settings.sources.device, "progress": progress, "rows": rows}
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
    from .sources.file import file_logits

    readme = path.with_name("README.md")
    try:
        result = file_logits(path=path, values="auto" if is_checked else "logits")
    except InputError as error:
        # The other fixes are those of `score`, which has an option for it.
        fixes = [fix for fix in error.fixes if "--values" not in fix]
        error.fixes = (*fixes, GO_ON) if len(fixes) < len(error.fixes) else error.fixes
        raise
    origin = {**result.details["origin"], "precomputed": True}
    if readme.is_file():
        lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
        prose = [line for line in lines if line and not line.startswith(("#", "|"))]
        origin |= {"readme": readme.name, "readme_says": prose[0][:500] if prose else ""}
    return replace(result, details={**result.details, "origin": origin})


def require_logits(plan: Plan) -> None:
    """Check that each benchmark has logits, as they lie; take ready-made ones where it has none.

    Those are of a folder paths.precomputed, or in the usual folder, if `paths.data` is another one.
    No later stage runs a source: it needs neither the images nor their settings. InputError: a
    benchmark's metric does not exist. UnitsFailed: which logits are absent, and how to make them.
    """
    absent = []
    for name, each in plan.settings.items():
        if each.benchmark.metrics is not None:
            from .scoring.files import columns_of  # with pandas

            columns_of(each)
        with suppress(CorruptFile):
            made_with, entry = plan.found(name).options, each.benchmark.source
            other = [key for key, value in made_with.items() if entry.get(key) != value]
            if plan.found(name).details.get("rows") != each.benchmark.rows:
                other.append("benchmark.rows")
            if other:
                say(
                    f"{name}: the logits lie there with other settings of the source "
                    f"({', '.join(other)}); utility-calibration logits makes them again"
                )
            continue
        if ready_made(each):
            # `force` is for the later stage's units.
            run_tasks("logits", [logits_step(replace(each, force=False))], one_by_one=True)
            continue
        usual = logits_step(replace(each, paths=_usual(each)))
        if usual.is_current():
            say(f"{name}: logits copied from {usual.path}")
            with atomic_path(logits_path(each)) as temporary:
                copyfile(usual.path, temporary)
        else:
            absent.append(name)
    if absent:
        fix = "run utility-calibration logits with the same arguments first"
        raise UnitsFailed(f"no logits, or damaged ones, of {', '.join(absent)}; {fix}")


def _usual(settings: Settings) -> Paths:
    """The paths of a command line that names none."""
    return replace(settings.paths, data=Path(OmegaConf.load(CONF / "paths/default.yaml").data))
