"""The tasks of the stages: what is made, in which file, and what its key depends on.

A `Task` has a file, a key and the function that makes the file (harness/task.py says what all words
mean). `key_of` makes every key. In each key is the code that makes the file, and beside it what
this table says. “The logits” are one digest of a benchmark's logits, labels, weights, clusters and
given test points. Groups and similarity are not in it, and are named where they count:

    task         in its key
    logits       the source's settings and its input files, `rows`, and the same of the similarity
                 of classes; of ready-made logits the content of their file instead
    fit          the calibrator's settings, the split, the logits; the groups if it needs them
    score        the fitted arrays and their predictions, the split, the logits, the similarity,
                 the settings of the evaluation, except those that name files
    all splits   the keys of the scores, the groups, the names of the classes
    costs        the keys of the scores
    dynamics     the split, the logits, the settings of the family
    users        the fitted arrays and their predictions, the split, the logits, the settings of
                 users, the calibrators of the suite
    sums         what the person says, the layout, the calibrator, the paths and states of shards

In no key are the versions of libraries (the log of runs has them), comments, docstrings,
pipeline/harness, the machine, the number of jobs, and the names of folders other than shards'. A
calibrator or source of another package has its own package's code in its key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from .harness.artifacts import CorruptFile, sha256_of, sha256_of_json
from .harness.cache import Record, record_of
from .harness.code_digest import code_digest, targets_in
from .harness.parallel import late
from .harness.settings import Settings, Target
from .harness.task import Task
from .harness.units import Unit
from .scoring.points import CachedLogits, find_logits, logits_path
from .sources.input_digests import inputs_of, ready_made


def key_of(content: Mapping[str, Any], *code: str) -> str:
    """The key of a task from its settings and input, and the modules or names of its `code`."""
    behind = {"code": code_digest(*code, *targets_in(dict(content)))} if code else {}
    return sha256_of_json({**content, **behind})


def logits_task(settings: Settings) -> Task:
    """Make a benchmark's logits; the key has source, similarity and their code.

    Logits that were taken from a folder stay up to date if a later command does not name it.
    """
    path = logits_path(settings)
    record = record_of(path) or {}
    rows = settings.benchmark.rows
    part = {} if rows is None else {"rows": rows}
    ready = ready_made(settings)
    inputs: Record
    if ready is not None:
        content = {"precomputed": ready.name, "sha256": sha256_of(ready), **part}
        inputs = {"made_from": key_of(content), "files": {}}
    elif _was_ready_made(record, rows):
        # The key repeats what the record says, so such logits stay up to date.
        inputs = {"made_from": str(record["made_from"]), "files": {}}
    else:
        inputs = _inputs_of(settings.benchmark.source, record.get("files", {}))
        if part:
            inputs["made_from"] = key_of({"made_from": inputs["made_from"], **part})
    similarity = _inputs_of(settings.benchmark.similarity, record.get("similarity_files", {}))
    inputs["similarity_files"] = similarity["files"]
    key = key_of({"made_from": inputs["made_from"], "similarity": similarity["made_from"]})
    make = partial(late, f"{__package__}.sources.logits_maker.made", settings, inputs)
    return Task(settings.benchmark.name, settings, path, key, make)


def _was_ready_made(record: Record, rows: int | None) -> bool:
    """Whether the logits that are there were taken from a folder, with so many rows."""
    details = record.get("details", {})
    origin = details.get("origin")  # a text where a stage made the logits
    is_ready_made = isinstance(origin, dict) and bool(origin.get("precomputed"))
    return is_ready_made and details.get("rows") == rows


def _inputs_of(entry: Target | None, old_files: Record) -> Record:
    """What a `_target_` makes its answer from, and a digest; `old_files`: those of before."""
    if entry is None:
        return {"made_from": "", "files": {}}
    inputs = inputs_of(entry, old_files)
    return {"made_from": key_of(inputs, str(entry["_target_"])), **inputs}


def fit_task(unit: Unit, logits: CachedLogits) -> Task:
    """Fit a unit; the key has calibrator, split, logits and code."""
    content = {**_points(unit.settings, unit.split, logits), "calibrator": unit.settings.calibrator}
    return _task(str(unit), unit.settings, logits, unit.fit_path, "fitted.fitted", content, unit)


def score_task(unit: Unit, logits: CachedLogits) -> Task:
    """Score a fitted unit; the key has the fitted arrays, their predictions, points and options.

    It does not have the fit's own key, so a new fit with the same arrays keeps its scores.
    """
    fit = _record_that_is_there(unit.fit_path)
    content = {
        **_points(unit.settings, unit.split, logits),
        "fitted": [fit["arrays"], fit.get("predictions")],
        "similarity": logits.similarity_sha256,
        "evaluation": unit.settings.evaluation.measured(),
    }
    path, maker = unit.scores_path, "held_out.evaluated"
    return _task(str(unit), unit.settings, logits, path, maker, content, unit)


def all_splits_task(units: Sequence[Unit], logits: CachedLogits) -> Task:
    """Find one calibrator's worst intervals over its scored `units`, and score groups."""
    first = units[0]
    content = {
        "scores": _keys(units),
        "arrays": logits.arrays_sha256,
        "class_names": logits.details.get("class_names"),
    }
    path, maker = first.scores_path.with_name("worst.npz"), "across_splits.across_splits"
    name = f"{first.benchmark} {first.calibrator}, all splits"
    return _task(name, first.settings, logits, path, maker, content, units)


def costs_task(units: Sequence[Unit], logits: CachedLogits) -> Task:
    """Find what decisions by one's own losses cost with all calibrators; `units` are scored."""
    first = units[0]
    content = {"scores": _keys(units)}
    path = first.scores_path.parents[1] / "costs.npz"
    name = f"{first.benchmark}, decisions"
    return _task(name, first.settings, logits, path, "costs.costs_of", content, units)


def sums_task(
    settings: Settings,
    name: str,
    place: str,
    content: Mapping[str, Any],
    size: int,
    *arguments: Any,
) -> Task:
    """Add up what one pass keeps of some shards; the key has `content`, which says what is read.

    place: the file below those of the benchmark, without its ending. size: of `Task`.
    """
    maker = f"{__package__}.own.streaming.sums.summed"
    path = settings.paths.data / "shards" / settings.benchmark.name / f"{place}.npz"
    make = partial(late, maker, *arguments)
    return Task(name, settings, path, key_of(content, maker), make, size)


def dynamics_task(settings: Settings, family: str, split: int) -> Task:
    """Study one family of users on a split; the key has the options, the points and the code."""
    benchmark = settings.benchmark.name
    options = asdict(settings.dynamics)
    # Not the options of other families, nor what does not change a study.
    unused = {name for name, value in options.items() if isinstance(value, Mapping)} - {family}
    unused |= {"name", "families", "splits"}
    used = {key: value for key, value in options.items() if key not in unused}
    logits = find_logits(settings)
    maker = "dynamics_study.studied"
    content = {**_points(settings, split, logits), "family": family, "options": used}
    path = settings.paths.data / "dynamics" / benchmark / family / f"{split}.npz"
    name = f"{benchmark} {family} split {split}"
    return _task(name, settings, logits, path, maker, content, settings, family, split)


def users_task(unit: Unit, logits: CachedLogits) -> Task:
    """Study users on a fitted unit's test points; the key has the fit, the points and options."""
    fit = _record_that_is_there(unit.fit_path)
    content = {
        **_points(unit.settings, unit.split, logits),
        "fitted": [fit["arrays"], fit.get("predictions")],
        "options": asdict(unit.settings.users),
        "calibrators": list(unit.settings.suite.calibrators),
    }
    path, maker = unit.users_path, "users_study.studied"
    return _task(str(unit), unit.settings, logits, path, maker, content, unit)


def _task(
    name: str,
    settings: Settings,
    logits: CachedLogits,
    path: Path,
    maker: str,
    content: Mapping[str, Any],
    *arguments: Any,
) -> Task:
    """The task of a function of scoring/ that makes a file from `arguments`."""
    maker = f"{__package__}.scoring.{maker}"
    key = key_of(content, maker)
    make = partial(late, maker, *arguments)
    return Task(name, settings, path, key, make, logits.size)


def _keys(units: Sequence[Unit]) -> list[str]:
    """The keys of the scores of units, which are there."""
    return [str(_record_that_is_there(unit.scores_path)["key"]) for unit in units]


def _record_that_is_there(path: Path) -> Record:
    """The record of a file that an earlier stage has made; CorruptFile: it is gone or damaged."""
    record = record_of(path)
    if record is None:
        raise CorruptFile("gone or damaged", file=path, fixes="run the same command again")
    return record


def _points(settings: Settings, split: int, logits: CachedLogits) -> dict[str, Any]:
    """The entries of a key that say which points a split has."""
    splits = asdict(settings.splits)
    del splits["count"]
    points = {"split": split, **splits, "logits": logits.sha256}
    if settings.calibrator.get("needs_groups"):
        points["arrays"] = logits.arrays_sha256  # those of the groups, too
    return points
