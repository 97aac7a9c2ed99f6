"""The plan of a request: what makes its logits, fits and scores, each step asked for once.

A step is a `Task`: its file, the key that the file holds if it is up to date, and the function that
makes it. The key is a digest of settings, input and code; `key_of` makes every one. A plan caches
what it finds: it does not notice files that the stage writes afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from .harness.artifacts import sha256_of, sha256_of_json
from .harness.cache import Record, record_of
from .harness.code_digest import code_digest, targets_in
from .harness.parallel import Task, last_errors, late
from .harness.settings import Settings, Target
from .harness.units import Unit
from .scoring.points import CachedLogits, find_logits, logits_path
from .sources.input_digests import inputs_of, ready_made

DONE, MISSING, STALE, FAILED = STATES = ("done", "missing", "stale", "failed")


class State(NamedTuple):
    """The state of a unit."""

    name: str
    """One of STATES."""
    reason: str = ""
    """Empty for what is done."""


def key_of(content: Mapping[str, Any], *code: str) -> str:
    """The key of a step from its settings and input, and the modules or names of its `code`."""
    behind = {"code": code_digest(*code, *targets_in(dict(content)))} if code else {}
    return sha256_of_json({**content, **behind})


def logits_step(settings: Settings) -> Task:
    """Make a benchmark's logits; the key has source, similarity and their code.

    Logits that were taken from a folder stay current if a later command does not name the folder.
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


def fit_step(unit: Unit, logits: CachedLogits) -> Task:
    """Fit a unit; the key has calibrator, split, logits and code."""
    content = {**_points(unit.settings, unit.split, logits), "calibrator": unit.settings.calibrator}
    return _step(str(unit), unit.settings, logits, unit.fit_path, "fitted.fitted", content, unit)


def score_step(unit: Unit, logits: CachedLogits) -> Task:
    """Score a fitted unit; the key has the fitted arrays, their predictions, points and options.

    It does not have the fit's own key, so a new fit with the same arrays keeps its scores.
    """
    fit = record_of(unit.fit_path) or {}
    content = {
        **_points(unit.settings, unit.split, logits),
        "fitted": [fit.get("arrays"), fit.get("predictions")],
        "similarity": logits.similarity_sha256,
        "evaluation": asdict(unit.settings.evaluation),
    }
    path, maker = unit.scores_path, "held_out.evaluated"
    return _step(str(unit), unit.settings, logits, path, maker, content, unit)


def all_splits_step(units: Sequence[Unit], logits: CachedLogits) -> Task:
    """Find one calibrator's worst intervals over its scored `units`, and score groups."""
    first = units[0]
    content = {
        "scores": _keys(units),
        "arrays": logits.arrays_sha256,
        "class_names": logits.details.get("class_names"),
    }
    path, maker = first.scores_path.with_name("worst.npz"), "across_splits.across_splits"
    name = f"{first.benchmark} {first.calibrator}, all splits"
    return _step(name, first.settings, logits, path, maker, content, units)


def costs_step(units: Sequence[Unit], logits: CachedLogits) -> Task:
    """Find what decisions by one's own losses cost with all calibrators; `units` are scored."""
    first = units[0]
    content = {"scores": _keys(units)}
    path = first.scores_path.parents[1] / "costs.npz"
    name = f"{first.benchmark}, decisions"
    return _step(name, first.settings, logits, path, "costs.costs_of", content, units)


def sums_step(
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
    maker = f"{__package__}.own.sums.summed"
    path = settings.paths.data / "shards" / settings.benchmark.name / f"{place}.npz"
    make = partial(late, maker, *arguments)
    return Task(name, settings, path, key_of(content, maker), make, size)


def dynamics_step(settings: Settings, family: str, split: int) -> Task:
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
    return _step(name, settings, logits, path, maker, content, settings, family, split)


def users_step(unit: Unit, logits: CachedLogits) -> Task:
    """Study users on a fitted unit's test points; the key has the fit, the points and options."""
    fit = record_of(unit.fit_path) or {}
    content = {
        **_points(unit.settings, unit.split, logits),
        "fitted": [fit.get("arrays"), fit.get("predictions")],
        "options": asdict(unit.settings.users),
        "calibrators": list(unit.settings.suite.calibrators),
    }
    path, maker = unit.users_path, "users_study.studied"
    return _step(str(unit), unit.settings, logits, path, maker, content, unit)


def _step(
    name: str,
    settings: Settings,
    logits: CachedLogits,
    path: Path,
    maker: str,
    content: Mapping[str, Any],
    *arguments: Any,
) -> Task:
    """The step in which a function of scoring/ makes a file from `arguments`."""
    maker = f"{__package__}.scoring.{maker}"
    key = key_of(content, maker)
    make = partial(late, maker, *arguments)
    return Task(name, settings, path, key, make, logits.size)


def _keys(units: Sequence[Unit]) -> list[str]:
    """The keys of the units' scores."""
    return [str((record_of(unit.scores_path) or {}).get("key")) for unit in units]


def _points(settings: Settings, split: int, logits: CachedLogits) -> dict[str, Any]:
    """The entries of a key that say which points a split has."""
    splits = asdict(settings.splits)
    del splits["count"]
    points = {"split": split, **splits, "logits": logits.sha256}
    if settings.calibrator.get("needs_groups"):
        points["arrays"] = logits.arrays_sha256  # those of the groups, too
    return points


def not_fitted(units: Sequence[Unit]) -> str:
    """What to tell of units that have no current fit."""
    more = f" and {len(units) - 1} more" if len(units) > 1 else ""
    message = "not fitted with these settings and this code"
    fix = "run utility-calibration fit with the same arguments first"
    return f"{units[0]}{more}: {message}; {fix}"


class Plan:
    """Units, and the steps that make them."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = list(units)
        self.settings: dict[str, Settings] = {}
        """Of each benchmark by name, with the first calibrator. The last benchmark comes first, and
        reports have this order."""
        for unit in reversed(self.units):
            self.settings[unit.benchmark] = unit.settings
        self._logits_of: dict[str, CachedLogits] = {}
        self._fits: dict[Unit, Task] = {}
        self._scores: dict[Unit, Task] = {}

    @cached_property
    def all_splits(self) -> list[Unit]:
        """The units of all splits of each benchmark and calibrator."""
        first_of_pair: dict[tuple[str, str], Unit] = {}
        for unit in self.units:
            first_of_pair.setdefault((unit.benchmark, unit.calibrator), unit)
        units: list[Unit] = []
        for unit in first_of_pair.values():
            splits = range(unit.settings.splits.count)
            units += [replace(unit, split=split) for split in splits]
        return units

    @cached_property
    def logits(self) -> dict[str, Task]:
        """The step of each benchmark's logits."""
        return {name: logits_step(settings) for name, settings in self.settings.items()}

    def found(self, benchmark: str) -> CachedLogits:
        """The logits that are there; CorruptFile where there are none."""
        if benchmark not in self._logits_of:
            self._logits_of[benchmark] = find_logits(self.settings[benchmark])
        return self._logits_of[benchmark]

    def fit(self, unit: Unit) -> Task:
        """The step that fits a unit, whose logits are there."""
        if unit not in self._fits:
            self._fits[unit] = fit_step(unit, self.found(unit.benchmark))
        return self._fits[unit]

    def score(self, unit: Unit) -> Task:
        """The step that scores a unit, whose fit is there."""
        if unit not in self._scores:
            self._scores[unit] = score_step(unit, self.found(unit.benchmark))
        return self._scores[unit]

    def states(self) -> Iterator[tuple[Unit, State]]:
        """Each unit with its state, which is that of the first step that is not done."""
        errors = last_errors(next(iter(self.settings.values())).paths.data)
        states_of_logits = {}
        for name, step in self.logits.items():
            states_of_logits[name] = _state(step, "no logits", errors)
        for unit in self.units:
            state = states_of_logits[unit.benchmark]
            if state.name == DONE:
                state = _state(self.fit(unit), "not fitted", errors)
            if state.name == DONE:
                state = _state(self.score(unit), "not evaluated", errors)
            yield unit, state


def _state(task: Task, absent: str, errors: Mapping[str, str]) -> State:
    """The state of one step; `absent` is the reason where its file is not there."""
    if task.is_current():
        return State(DONE)
    error = errors.get(task.place.as_posix())
    if error:
        return State(FAILED, error)
    record = record_of(task.path)
    if record is None:
        return State(MISSING, absent)
    settings = task.settings
    for name, key, wanted in (
        ("calibrator", "config", settings.calibrator),
        ("splits", "splits", asdict(settings.splits)),
        ("evaluation", "evaluation", asdict(settings.evaluation)),
    ):
        if key in record and record[key] != wanted:
            return State(STALE, f"other settings of {name}")
    return State(STALE, "other input or other code")
