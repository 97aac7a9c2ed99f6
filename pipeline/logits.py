"""Stage 1 of 5: the logits of each benchmark, from its source to data/logits/<benchmark>.npz.

python -m pipeline.logits benchmark=cifar10_resnet
python -m pipeline.logits suite=cifar paths.precomputed=/folder/with/npz/files
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate
from omegaconf import DictConfig

from pipeline.harness.artifacts import read_npz, save_npz, sha256_of, sha256_of_json
from pipeline.harness.cache import Record, Save, record_of
from pipeline.harness.code import code_digest, targets_in
from pipeline.harness.command import UnitsFailed, UsageError, command
from pipeline.harness.machine import versions
from pipeline.harness.parallel import Progress, Task, run_tasks
from pipeline.harness.progress import say
from pipeline.harness.settings import Settings, Target
from pipeline.harness.units import Request
from pipeline.scoring.points import logits_path
from pipeline.sources.content import class_count, inputs_of
from pipeline.sources.result import MissingResource, SourceResult

ACCURACY_TOLERANCE = 0.3
"""Percentage points. A larger gap between our accuracy and the published one gives a warning."""

OF_POINTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "groups": ("groups", lambda names: dict(sorted(Counter(names.tolist()).items()))),
    "clusters": ("clusters", lambda names: len(set(names.tolist()))),
    "weights": ("weights", lambda weights: [float(weights.min()), float(weights.max())]),
    "tested": (
        "given_splits",
        lambda splits: [{"calibration": int((~t).sum()), "test": int(t.sum())} for t in splits],
    ),
}
"""What a source may say of points: the record's name for it, and what the record says."""


def logits_task(settings: Settings) -> Task:
    """The task of making a benchmark's logits; its key has source, similarity and their code."""
    benchmark, record = settings.benchmark, record_of(logits_path(settings)) or {}
    inputs = _inputs(settings, record)
    similarity = _inputs_of(benchmark.similarity, record.get("similarity_files", {}))
    key = {"made_from": inputs["made_from"], "similarity": similarity["made_from"]}
    return Task(
        name=benchmark.name,
        settings=settings,
        path=logits_path(settings),
        key=sha256_of_json(key),
        make=partial(_made, settings, inputs | {"similarity_files": similarity["files"]}),
    )


def _inputs(settings: Settings, record: Record) -> Record:
    """`made_from`: a digest of the source's settings, files and code, or of the ready-made file.

    Logits that were taken from a folder stay current if a later command does not name the folder.
    """
    ready = ready_made(settings)
    if ready is not None:
        named = {"precomputed": ready.name, "sha256": sha256_of(ready)}
        return {"made_from": sha256_of_json(named), "files": {}}
    origin = record.get("details", {}).get("origin")
    if isinstance(origin, dict) and origin.get("precomputed"):
        return {"made_from": str(record["made_from"]), "files": {}}
    return _inputs_of(settings.benchmark.source, record.get("files", {}))


def _inputs_of(entry: Target | None, held: Record) -> Record:
    """What a `_target_` makes its answer from: its options, the content of files, its code.

    Args:
        held: `files` of the answer that lies there.
    """
    if entry is None:
        return {"made_from": "", "files": {}}
    inputs = inputs_of(entry, held)
    code = code_digest(*targets_in(entry))
    return {"made_from": sha256_of_json({**inputs, "code": code}), **inputs}


def _made(
    settings: Settings, inputs: Record, device: str, progress: Progress
) -> tuple[Save, Record]:
    """Run the source; if only the similarity changed, keep the logits."""
    # The similarity comes first: if its word vectors are missing, no time goes into a forward pass.
    similarity = instantiate(settings.benchmark.similarity, _convert_="all")
    if similarity is not None:
        _check_size(similarity[0], class_count(settings.benchmark.source))
    record = record_of(logits_path(settings)) or {}
    is_same = record.get("made_from") == inputs["made_from"] and "details" in record
    if is_same and not settings.force:
        arrays, details = dict(read_npz(logits_path(settings))), dict(record["details"])
        arrays.pop("similarity", None)
        details.pop("similarity", None)
    else:
        arrays, details = _computed(settings, progress)
    if similarity is not None:
        _check_size(similarity[0], details["classes"])
        arrays["similarity"], details["similarity"] = similarity
        if line := details["similarity"].get("line"):
            say(f"{settings.benchmark.name}: {line}")
    return partial(save_npz, arrays=arrays), {**inputs, "details": details}


def _check_size(similarity: Any, classes: int | None) -> None:
    if classes is not None and len(similarity) != classes:
        raise UsageError(
            f"benchmark.similarity: it is of {len(similarity)} classes, the logits are of "
            f"{classes}; correct its class_names or path, or set benchmark.similarity=null"
        )


def _computed(settings: Settings, progress: Progress) -> tuple[dict[str, Any], Record]:
    """The checked arrays of the source, and the record's details about them."""
    from metrics.validation import check_labels, check_logits

    name, published = settings.benchmark.name, settings.benchmark.published_accuracy
    result = _taken_or_computed(settings, progress)
    check_logits(result.logits, name=f"{name}: logits")
    n, classes = result.logits.shape
    check_labels(result.labels, n, classes, name=f"{name}: labels")
    accuracy = 100 * float(np.mean(result.logits.argmax(axis=1) == result.labels))
    warnings = list(result.details.get("warnings", []))
    if published is not None and abs(accuracy - published) > ACCURACY_TOLERANCE:
        warnings.append(f"accuracy {accuracy:.2f} %, published {published:.2f} %")
    for warning in warnings:
        say(f"{name}: {warning}")
    # `asarray` makes no copy: the logits may be mapped from a large file.
    arrays: dict[str, Any] = {
        "logits": np.asarray(result.logits, dtype=np.float32),
        "labels": result.labels.astype(np.int64),
    }
    chance = 1 / classes
    details = {
        **result.details,
        "n": n,
        "classes": classes,
        "rarest_class": int(np.bincount(result.labels, minlength=classes).min()),
        "accuracy": accuracy,
        "below_chance": accuracy / 100 < chance - 2 * math.sqrt(chance * (1 - chance) / n),
        "published_accuracy": published,
        "warnings": warnings,
        "versions": versions(),
    }
    for kind, (key, described) in OF_POINTS.items():
        if (values := getattr(result, kind)) is not None:
            arrays[kind], details[key] = values, described(values)
    return arrays, details


@command
def main(config: DictConfig) -> None:
    """Make the logits of the requested benchmarks."""
    run_logits(Request.from_hydra(config).benchmark_settings())


def run_logits(settings: Sequence[Settings]) -> None:
    """Make the logits of each benchmark that is not up to date.

    Raises:
        UnitsFailed: the benchmarks that failed, after all others are done.
    """
    for benchmark in settings:
        _check_vectors_first(benchmark)
    run_tasks("logits", [logits_task(benchmark) for benchmark in settings], one_by_one=True)


def _check_vectors_first(settings: Settings) -> None:
    """Check a file of word vectors at once, before images are counted and large files are read.

    One that went away after the logits were made is not missed.
    """
    named = (settings.benchmark.similarity or {}).get("vectors_path")
    if named is None:
        return
    path = Path(named).expanduser()
    if path.exists() or settings.force or record_of(logits_path(settings)) is None:
        from pipeline.sources.similarity import check_vectors  # with torch

        check_vectors(path)


def require_logits(settings: Iterable[Settings]) -> None:
    """Check that each benchmark has logits, as they lie; take ready-made ones where it has none.

    No later stage runs a source: it needs neither the images nor their settings.

    Raises:
        InputError: a metric of a benchmark that does not exist.
        UnitsFailed: there are no logits, and how to make them.
    """
    by_name = {benchmark.benchmark.name: benchmark for benchmark in settings}
    absent = []
    for name, benchmark in by_name.items():
        if benchmark.benchmark.metrics is not None:
            from pipeline.scoring.files import columns_of  # with torch and pandas

            columns_of(benchmark)
        record = record_of(logits_path(benchmark))
        if record is None and ready_made(benchmark) is not None:
            run_logits([replace(benchmark, force=False)])  # `force` is for the later stage's units
        elif record is None:
            absent.append(name)
        else:
            entry, made_with = benchmark.benchmark.source, record.get("options", {})
            other = [key for key, value in made_with.items() if entry.get(key) != value]
            if other:
                say(
                    f"{name}: the logits lie there with other settings of the source "
                    f"({', '.join(other)}); python -m pipeline.logits makes them again"
                )
    if absent:
        raise UnitsFailed(
            f"no logits, or damaged ones, of {', '.join(absent)}; run python -m pipeline.logits "
            "with the same arguments first"
        )


def _taken_or_computed(settings: Settings, progress: Progress) -> SourceResult:
    benchmark, ready = settings.benchmark, ready_made(settings)
    if ready is None:
        _say_what_the_folder_lacks(settings)
        # A person's texts, such as a path, may hold `${` or be `???`, which Hydra would resolve.
        texts = {
            key: value
            for key, value in benchmark.source.items()
            if isinstance(value, str) and not key.startswith("_")
        }
        others = {key: value for key, value in benchmark.source.items() if key not in texts}
        source = instantiate(others, _convert_="all", _partial_=True)
        expected = signature(source.func)
        work = {"device": settings.sources.device, "progress": progress}
        options = {key: value for key, value in work.items() if key in expected.parameters} | texts
        try:
            expected.bind(**source.keywords, **options)
        except TypeError as error:
            raise UsageError(f"benchmark.source: {error}") from error
        result = source(**options)
        assert isinstance(result, SourceResult)
        return result
    from pipeline.sources.file import file_logits

    taken = file_logits(path=ready, values="logits")
    origin = {**taken.details["origin"], "precomputed": True, **_readme_beside(ready)}
    return replace(taken, details={**taken.details, "origin": origin})


def ready_made(settings: Settings) -> Path | None:
    """The ready-made npz of the benchmark in paths.precomputed."""
    folder, stem = settings.paths.precomputed, settings.benchmark.precomputed
    if not folder or not stem:
        return None
    if not Path(folder).expanduser().is_dir():
        raise MissingResource(f"paths.precomputed={folder}: no such folder; correct or unset it")
    path = Path(folder).expanduser() / f"{stem}.npz"
    return path if path.is_file() else None


def _say_what_the_folder_lacks(settings: Settings) -> None:
    """A line where the user names a folder of ready-made logits without those of the benchmark."""
    if folder := settings.paths.precomputed:
        held = sorted(path.name for path in Path(folder).expanduser().glob("*.npz"))
        listed = ", ".join(held[:5]) + (", ..." if len(held) > 5 else "")
        name = f"{settings.benchmark.precomputed}.npz"
        say(f"no {name} in {folder} (it has {listed or 'no npz file'}); computing")


def _readme_beside(path: Path) -> dict[str, str]:
    """The first sentence of the folder's README.md, which says where the files come from."""
    readme = path.with_name("README.md")
    if not readme.is_file():
        return {}
    lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
    prose = [line for line in lines if line and not line.startswith(("#", "|"))]
    return {"readme": readme.name, "readme_says": prose[0][:500] if prose else ""}


if __name__ == "__main__":
    main()
