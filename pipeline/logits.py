"""Stage 1, unit: benchmark. From a source to data/logits/<benchmark>.npz and its sidecar.

python -m pipeline.logits benchmark=cifar10_resnet
python -m pipeline.logits suite=cifar paths.precomputed=/folder/with/npz/files
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pipeline.harness.artifacts import (
    read_json_if_whole,
    sha256_of,
    sha256_of_json,
    write_npz,
    write_record,
)
from pipeline.harness.cached_logits import (
    failed_path,
    logits_path,
    read_sidecar,
    running_path,
    sidecar_path,
    similarity_path,
)
from pipeline.harness.command import command
from pipeline.harness.fingerprint import source_fingerprint, targets_in
from pipeline.harness.locks import claimed, holder_of, noting_failure
from pipeline.harness.machine import versions
from pipeline.harness.progress import say
from pipeline.harness.runner import one_by_one, run_stage
from pipeline.harness.shared import adopt, share
from pipeline.harness.targets import made_of
from pipeline.harness.units import Request, Settings
from pipeline.sources.result import MissingResource, Progress, SourceResult

ACCURACY_TOLERANCE = 0.3
"""Percentage points between our accuracy and the published one that go without a warning."""
WITHOUT_EFFECT = ("batch_size", "workers")
"""Options of sources that change how fast logits come, not what they are."""


@dataclass(frozen=True)
class LogitsTask:
    """One benchmark whose logits are wanted."""

    settings: Settings

    def __str__(self) -> str:
        return str(self.settings["benchmark"]["name"])


@command
def main(config: DictConfig) -> None:
    """Make the logits of the benchmarks asked for."""
    request = Request.from_hydra(config)
    run_logits(request.benchmark_settings(), request)


def run_logits(settings: list[Settings], request: Request | None = None) -> None:
    """Make the logits of each benchmark that is not up to date, and share the suite's."""
    tasks = [LogitsTask(one) for one in settings]
    for one in settings:
        adopt(one, "logits", shared_files(one))
    kept = run_stage("logits", tasks, lambda task: is_current(task.settings), make_once, one_by_one)
    for task in kept:
        holder_of(running_path(task.settings))  # removes the lock of who was killed at the very end
    if request is not None:
        made = {name: path for one in settings for name, path in shared_files(one).items()}
        existing = {name: path for name, path in made.items() if path.exists()}
        share(request, settings[0], "logits", existing)


def shared_files(settings: Settings) -> dict[str, Path]:
    """What there is of a benchmark's logits, by name; the similarity not everywhere."""
    paths = (logits_path(settings), sidecar_path(settings), similarity_path(settings))
    return {path.name: path for path in paths}


def logits_aim(settings: Settings) -> str:
    """Identifies what the logits and the similarity are made from."""
    return sha256_of_json([_wanted_hash(settings), _similarity_hash(settings)])


def failure_of(settings: Settings) -> str | None:
    """Why the last attempt to make these very logits failed; None where it did not."""
    note = read_json_if_whole(failed_path(settings))
    return note.get("error") if note and note.get("aim") == logits_aim(settings) else None


def make_once(task: LogitsTask, progress: Progress | None = None) -> bool:
    """`make_logits`, by one process at a time; False where another one just did.

    Raises:
        Busy, OtherSettings: another process makes logits of this name now.
    """
    settings = task.settings
    aim = logits_aim(settings)
    lock = claimed(running_path(settings), f"logits {task}", aim)
    with noting_failure(failed_path(settings), aim), lock:
        if is_current(settings):
            return False
        make_logits(settings, progress)
    return True


def is_current(settings: Settings) -> bool:
    """Whether cached logits and similarity are whole and come from what the settings say."""
    record = read_sidecar(settings)
    if record is None or settings["force"]:
        return False
    return _has_logits(settings, record) and _has_similarity(settings, record)


def make_logits(settings: Settings, progress: Progress | None = None) -> None:
    """Write logits, similarity and sidecar of one benchmark; what is current is kept.

    Raises:
        MissingResource, InputError, CorruptFile: the source's one-line reasons.
    """
    # The similarity first: where its word vectors are missing, no forward pass is spent.
    similarity = made_of(settings["benchmark"].get("similarity"))
    record = read_sidecar(settings)
    if record is None or settings["force"] or not _has_logits(settings, record):
        record = _write_logits(settings, progress)
    for key in ("similarity", "similarity_sha256", "similarity_hash"):
        record.pop(key, None)  # written below, in the same order every time
    if similarity is not None:
        if "line" in similarity.details:
            say(f"{settings['benchmark']['name']}: {similarity.details['line']}")
        record["similarity"] = similarity.details
        record["similarity_sha256"] = write_npz(similarity_path(settings), matrix=similarity.matrix)
    record["similarity_hash"] = _similarity_hash(settings)
    write_record(sidecar_path(settings), record)


def _write_logits(settings: Settings, progress: Progress | None) -> dict[str, Any]:
    """Run the source (or take the ready-made file), check, write the npz; returns the sidecar."""
    import numpy as np

    from metrics.validation import check_labels, check_logits

    name, path = settings["benchmark"]["name"], logits_path(settings)
    result = _taken_or_computed(settings, progress)
    check_logits(result.logits, name=f"{name}: logits")
    n, classes = result.logits.shape
    check_labels(result.labels, n, classes, name=f"{name}: labels")
    accuracy = 100 * float(np.mean(result.logits.argmax(axis=1) == result.labels))
    published = settings["benchmark"]["published_accuracy"]
    warnings = list(result.details.get("warnings", []))
    if published is not None and abs(accuracy - published) > ACCURACY_TOLERANCE:
        warnings.append(f"accuracy {accuracy:.2f} %, published {published:.2f} %")
    for warning in warnings:
        say(f"{name}: {warning}")
    groups = {} if result.groups is None else {"groups": result.groups}
    sizes = {key: sorted(Counter(names.tolist()).items()) for key, names in groups.items()}
    logits = np.asarray(result.logits, dtype=np.float32)  # not copied: it may be a map of a file
    labels = result.labels.astype(np.int64)
    return {
        "hash": _wanted_hash(settings),
        **result.details,
        "sha256": write_npz(path, logits=logits, labels=labels, **groups),
        "n": n,
        "classes": classes,
        **{key: dict(counts) for key, counts in sizes.items()},
        "accuracy": accuracy,
        "published_accuracy": published,
        "warnings": warnings,
        "versions": versions(),
    }


def _taken_or_computed(settings: Settings, progress: Progress | None) -> SourceResult:
    benchmark = settings["benchmark"]
    ready = precomputed_file(settings)
    work_dir = Path(settings["paths"]["data"]) / "work" / benchmark["name"]
    if ready is None:
        options = {"device": settings["device"], "work_dir": work_dir, "progress": progress}
        result = made_of(benchmark["source"], **options)
        assert isinstance(result, SourceResult)
        return result
    from pipeline.sources.file import file_logits

    taken = file_logits(path=ready, values="logits")
    origin = {**taken.details["origin"], "precomputed": True, **_readme_beside(ready)}
    return replace(taken, details={**taken.details, "origin": origin})


def precomputed_file(settings: Settings) -> Path | None:
    """The ready-made npz of the benchmark, from paths.precomputed or the variable PRECOMPUTED."""
    folder = settings["paths"]["precomputed"] or os.environ.get("PRECOMPUTED")
    stem = settings["benchmark"].get("precomputed")
    if not folder or not stem:
        return None
    if not Path(folder).is_dir():
        raise MissingResource(f"paths.precomputed={folder}: no such folder; correct or unset it")
    path = Path(folder) / f"{stem}.npz"
    return path if path.is_file() else None


def _readme_beside(path: Path) -> dict[str, str]:
    """What the folder's README.md says: its line on this file's origin, else its first sentence."""
    readme = path.with_name("README.md")
    if not readme.is_file():
        return {}
    lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
    prose = [line for line in lines if line and not line.startswith(("#", "|"))]
    return {"readme": str(readme.absolute()), "readme_says": prose[0][:500] if prose else ""}


def _wanted_hash(settings: Settings) -> str:
    """Identifies what the logits are made from: the ready-made file, or the source and its code."""
    ready = precomputed_file(settings)
    if ready is not None:
        return sha256_of_json({"precomputed": ready.name, "sha256": sha256_of(ready)})
    source = settings["benchmark"]["source"]
    source = {key: value for key, value in source.items() if key not in WITHOUT_EFFECT}
    made_from: dict[str, Any] = {"source": source, "code": source_fingerprint(*targets_in(source))}
    if "path" in source and Path(source["path"]).is_file():
        made_from["sha256"] = sha256_of(source["path"])
    return sha256_of_json(made_from)


def _has_logits(settings: Settings, record: dict[str, Any]) -> bool:
    path = logits_path(settings)
    if not path.is_file() or sha256_of(path) != record.get("sha256"):
        return False
    return _are_wanted(settings, record)


def are_missing(settings: Settings) -> bool:
    """Whether nothing says what the cached logits are, or they are not what the settings say.

    Damaged ones are there: whoever reads them says so.
    """
    record = read_sidecar(settings)
    return record is None or not _are_wanted(settings, record)


def _are_wanted(settings: Settings, record: dict[str, Any]) -> bool:
    origin = record.get("origin")
    if (
        precomputed_file(settings) is None
        and isinstance(origin, dict)
        and origin.get("precomputed")
    ):
        return True  # taken from a folder earlier; without that folder they stay valid
    return record.get("hash") == _wanted_hash(settings)


def _has_similarity(settings: Settings, record: dict[str, Any]) -> bool:
    if record.get("similarity_hash") != _similarity_hash(settings):
        return False
    path, expected = similarity_path(settings), record.get("similarity_sha256")
    return expected is None or (path.is_file() and sha256_of(path) == expected)


def _similarity_hash(settings: Settings) -> str:
    return sha256_of_json(settings["benchmark"].get("similarity"))


if __name__ == "__main__":
    main()
