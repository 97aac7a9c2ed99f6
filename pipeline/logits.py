"""Stage 1 of 5: the logits of each benchmark, from its source to data/logits/<benchmark>.npz.

python -m pipeline.logits benchmark=cifar10_resnet
python -m pipeline.logits suite=cifar paths.precomputed=/folder/with/npz/files
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
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
from pipeline.harness.command import UsageError, command
from pipeline.harness.machine import versions
from pipeline.harness.parallel import Progress, Task, run_tasks
from pipeline.harness.progress import say
from pipeline.harness.settings import Settings, Target
from pipeline.harness.units import Request
from pipeline.scoring.cached_logits import logits_path
from pipeline.sources.result import MissingResource, SourceResult

ACCURACY_TOLERANCE = 0.3
"""Percentage points. A larger gap between our accuracy and the published one gives a warning."""
WITHOUT_EFFECT = ("batch_size", "workers")
"""Options of sources that change the speed, not the logits."""


def logits_task(settings: Settings) -> Task:
    """The task of making a benchmark's logits; its key has source, similarity and their code."""
    name, made_from = settings.benchmark.name, _made_from(settings)
    similarity = _key_of_target(settings.benchmark.similarity)
    return Task(
        name=name,
        settings=settings,
        path=logits_path(settings),
        key=sha256_of_json({"made_from": made_from, "similarity": similarity}),
        make=partial(_made, settings, made_from),
    )


def _made_from(settings: Settings) -> str:
    """A digest of the source: of its settings, code and files, or of the ready-made file.

    Logits that were taken from a folder stay current if a later command does not name the folder.
    """
    ready = ready_made(settings)
    if ready is not None:
        return sha256_of_json({"precomputed": ready.name, "sha256": sha256_of(ready)})
    record = record_of(logits_path(settings)) or {}
    origin = record.get("details", {}).get("origin")
    if isinstance(origin, dict) and origin.get("precomputed"):
        return str(record["made_from"])
    return _key_of_target(settings.benchmark.source)


def _made(
    settings: Settings, made_from: str, device: str, progress: Progress
) -> tuple[Save, Record]:
    """Run the source; if only the similarity changed, keep the logits."""
    # The similarity comes first: if its word vectors are missing, no time goes into a forward pass.
    similarity = instantiate(settings.benchmark.similarity, _convert_="all")
    record = record_of(logits_path(settings)) or {}
    if record.get("made_from") == made_from and "details" in record and not settings.force:
        arrays, details = dict(read_npz(logits_path(settings))), dict(record["details"])
        arrays.pop("similarity", None)
        details.pop("similarity", None)
    else:
        arrays, details = _computed(settings, progress)
    if similarity is not None:
        arrays["similarity"], details["similarity"] = similarity
        if line := details["similarity"].get("line"):
            say(f"{settings.benchmark.name}: {line}")
    return partial(save_npz, arrays=arrays), {"made_from": made_from, "details": details}


def _computed(settings: Settings, progress: Progress) -> tuple[dict[str, Any], Record]:
    """The checked arrays of the source, and the record's details about them."""
    from metrics.validation import check_labels, check_logits

    benchmark = settings.benchmark
    name = benchmark.name
    result = _taken_or_computed(settings, progress)
    check_logits(result.logits, name=f"{name}: logits")
    n, classes = result.logits.shape
    check_labels(result.labels, n, classes, name=f"{name}: labels")
    accuracy = 100 * float(np.mean(result.logits.argmax(axis=1) == result.labels))
    published = benchmark.published_accuracy
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
    details = {
        **result.details,
        "n": n,
        "classes": classes,
        "rarest_class": int(np.bincount(result.labels, minlength=classes).min()),
        "accuracy": accuracy,
        "below_chance": accuracy / 100
        < 1 / classes - 2 * math.sqrt((1 - 1 / classes) / classes / n),
        "published_accuracy": published,
        "warnings": warnings,
        "versions": versions(),
    }
    if result.groups is not None:
        arrays["groups"] = result.groups
        details["groups"] = dict(sorted(Counter(result.groups.tolist()).items()))
    if result.clusters is not None:
        arrays["clusters"] = result.clusters
        details["clusters"] = len(set(result.clusters.tolist()))
    if result.weights is not None:
        arrays["weights"] = result.weights
        details["weights"] = [float(result.weights.min()), float(result.weights.max())]
    if result.tested is not None:
        arrays["tested"] = result.tested
        details["given_splits"] = [
            {"calibration": int((~tested).sum()), "test": int(tested.sum())}
            for tested in result.tested
        ]
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
    run_tasks("logits", [logits_task(benchmark) for benchmark in settings], one_by_one=True)


def require_logits(settings: Iterable[Settings]) -> None:
    """Make the logits of each benchmark that are absent or made with other settings.

    Raises:
        InputError: a metric of a benchmark that does not exist.
        UnitsFailed: the logits could not be made.
    """
    by_name = {benchmark.benchmark.name: benchmark for benchmark in settings}
    for benchmark in by_name.values():
        if benchmark.benchmark.metrics is not None:
            from pipeline.scoring.files import columns_of  # with torch and pandas

            columns_of(benchmark)
        unforced = replace(benchmark, force=False)  # `force` is for the units of the later stage
        if not logits_task(unforced).is_current():
            run_logits([unforced])


def _taken_or_computed(settings: Settings, progress: Progress) -> SourceResult:
    benchmark, ready = settings.benchmark, ready_made(settings)
    if ready is None:
        source = instantiate(benchmark.source, _convert_="all", _partial_=True)
        expected = signature(source.func)
        work = {"device": settings.device, "progress": progress}
        options = {key: value for key, value in work.items() if key in expected.parameters}
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
    """The ready-made npz of the benchmark, from paths.precomputed or the variable PRECOMPUTED."""
    folder = settings.paths.precomputed or os.environ.get("PRECOMPUTED")
    stem = settings.benchmark.precomputed
    if not folder or not stem:
        return None
    if not Path(folder).is_dir():
        raise MissingResource(f"paths.precomputed={folder}: no such folder; correct or unset it")
    path = Path(folder) / f"{stem}.npz"
    return path if path.is_file() else None


def _readme_beside(path: Path) -> dict[str, str]:
    """The first sentence of the folder's README.md, which says where the files come from."""
    readme = path.with_name("README.md")
    if not readme.is_file():
        return {}
    lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
    prose = [line for line in lines if line and not line.startswith(("#", "|"))]
    return {"readme": readme.name, "readme_says": prose[0][:500] if prose else ""}


def _key_of_target(entry: Target | None) -> str:
    """A digest of what a `_target_` makes: of its options, its code, and its files' content."""
    from pipeline.own.read import SAVED, digest_of

    if entry is None:
        return ""
    options = {key: value for key, value in entry.items() if key not in WITHOUT_EFFECT}
    files = {
        key: digest_of(Path(value))
        for key, value in options.items()
        if isinstance(value, str) and (Path(value).is_file() or (Path(value) / SAVED).is_file())
    }
    return sha256_of_json(
        {"options": options, "files": files, "code": code_digest(*targets_in(entry))}
    )


if __name__ == "__main__":
    main()
