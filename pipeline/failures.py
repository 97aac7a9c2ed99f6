"""The worst utilities of a method over all splits; unit: benchmark x calibrator.

A unit's evaluation knows one split. Here the test points of all splits (where they are too
many, of the first) stand side by side: per class of utilities the utility with the largest mean
error, its diagram and its worst interval, kept in `worst.json` beside the splits so that the report
needs neither logits nor parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metrics.validation import InputError
from pipeline.evaluate import HeldOut, held_out, similarity_of
from pipeline.fit import FitTask, fit_tasks
from pipeline.harness.artifacts import read_record, sha256_of_json, write_record
from pipeline.harness.cached_logits import logits_path, logits_record
from pipeline.harness.progress import say
from pipeline.harness.runner import run_stage, side_by_side
from pipeline.harness.targets import made_of
from pipeline.harness.units import Settings, Unit
from pipeline.sources.class_names import class_names
from pipeline.sources.own_utilities import name_of

if TYPE_CHECKING:
    from torch import Tensor

    from metrics.forecast import Forecast

TITLE = "worst intervals"
REPETITIONS = 100
"""Redrawn label vectors behind a diagram's noise band."""
LARGEST = 60_000_000
"""Probabilities held at a time; of larger benchmarks the first splits only, at least one."""


@dataclass(frozen=True)
class FailureTask:
    """All splits of one method on one benchmark, and the hash of their evaluations."""

    units: tuple[Unit, ...]
    hash: str

    @property
    def path(self) -> Path:
        """Where its record lies."""
        return self.units[0].files.worst

    @property
    def settings(self) -> Settings:
        """Their configuration."""
        return self.units[0].settings

    @property
    def size(self) -> int:
        """Logits of the benchmark, n x C."""
        return size_of(self.settings)

    def __str__(self) -> str:
        return f"{self.units[0].benchmark} {self.units[0].calibrator}, all splits"


def size_of(settings: Settings) -> int:
    """Logits of the benchmark, n x C; 0 where they are not known."""
    record = logits_record(settings)
    return int(record.get("n", 0)) * int(record.get("classes", 0))


def find_failures(units: Sequence[Unit]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The records of every method on every benchmark among `units`, computed where out of date.

    Returns:
        {(benchmark, method): {metric: record}}; nothing for a method whose parameters are not here
        and whose record is of other evaluations.

    Raises:
        UnitsFailed: some could not be computed, after all others are done.
    """
    tasks = brought_up_to_date(TITLE, tasks_of(units), _is_current, write_failures)
    return {
        (task.units[0].benchmark, task.units[0].calibrator): record["metrics"]
        for task in tasks
        if (record := read_record(task.path))
    }


def brought_up_to_date(
    title: str,
    tasks: Sequence[FailureTask],
    is_current: Callable[[FailureTask], bool],
    write: Callable[[FailureTask], None],
) -> list[FailureTask]:
    """The tasks whose file is current, or could be written here; says which others there are.

    Raises:
        UnitsFailed: some could not be written, after all others are done.
    """
    absent = [task for task in tasks if not is_current(task) and not can_compute(task)]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        say(f"no {title} of {absent[0]}{more}: the fitted parameters are not here")
    able = [task for task in tasks if task not in absent]
    if able:
        run = partial(side_by_side, device="cpu")
        run_stage(title, able, is_current, write, run, lambda task: task.units[0].calibrator)
    return able


def tasks_of(units: Sequence[Unit]) -> list[FailureTask]:
    """One task per (benchmark, method) among `units`."""
    pairs: dict[tuple[str, str], list[Unit]] = {}
    for unit in units:
        pairs.setdefault((unit.benchmark, unit.calibrator), []).append(unit)
    return [FailureTask(tuple(own), _hash(own)) for own in pairs.values()]


def can_compute(task: FailureTask) -> bool:
    """Whether logits and current parameters are here."""
    here = [logits_path(task.settings), *(unit.files.fit.path for unit in task.units)]
    return all(p.is_file() for p in here) and all(fit.is_done() for fit in fit_tasks(task.units))


def _hash(units: Sequence[Unit]) -> str:
    """Identifies the evaluations that the record is of."""
    hashes = [(read_record(unit.files.scores.json) or {}).get("hash") for unit in units]
    return sha256_of_json({"units": hashes, "repetitions": REPETITIONS})


def _is_current(task: FailureTask) -> bool:
    return (read_record(task.path) or {}).get("hash") == task.hash


def write_failures(task: FailureTask) -> None:
    """Compute one method's record and write it."""
    fits = fit_tasks(task.units)
    record = {"hash": task.hash, "metrics": worst_of(fits[0], held_out_together(fits))}
    write_record(task.path, record)


def held_out_together(fits: Sequence[FitTask]) -> list[HeldOut]:
    """The test points of as many splits as fit into memory, at least of one."""
    size = fits[0].logits.n * fits[0].logits.classes
    return [held_out(fit, "cpu") for fit in fits[: splits_together(size, len(fits))]]


def splits_together(size: int, splits: int) -> int:
    """Of how many of the `splits` the test points fit; `size`: logits of the benchmark, n x C."""
    return min(splits, max(1, LARGEST // max(1, size)))


def worst_of(fit: FitTask, splits: Sequence[HeldOut]) -> dict[str, dict[str, Any]]:
    """Per utility metric the worst utility over `splits`, its interval and its diagram.

    `fit`: any of one method and benchmark, for the options of their evaluation.
    """
    from metrics.forecast import Forecast
    from metrics.registry import metrics_of

    settings, options = fit.unit.settings, evaluation_options(fit)
    forecasts = [Forecast(one.probabilities) for one in splits]  # sorted once for all metrics
    drawn = _redrawn(forecasts, splits, fit.logits.n)
    names, own = class_names_of(settings), settings["evaluation"]["own"]
    found = {}
    for metric in metrics_of(options):
        utilities = metric.utility_class(options)
        if utilities is not None:
            record = _worst(utilities, forecasts, splits, drawn)
            index, entry = record["utility"], own.get(metric.key)
            name = (
                utility_name(metric.key, index, names, options.exponents)
                if entry is None
                else name_of(entry, index)
            )
            found[metric.key] = {"name": name, **record}
    return found


def evaluation_options(fit: FitTask) -> Any:
    """The options that the unit's metrics were computed with."""
    from metrics.measurement import Options

    names = {field.name for field in fields(Options)}
    given = {k: v for k, v in fit.unit.settings["evaluation"].items() if k in names}
    return Options(**given | {"own": made_of(given["own"]), "similarity": similarity_of(fit)})


def _redrawn(forecasts: Sequence[Forecast], splits: Sequence[HeldOut], n: int) -> list[Tensor]:
    """Labels drawn from the probabilities of each split, int64 [R, points] each.

    The same uniforms for one of the `n` points in every split: the same luck in all of them.
    """
    import torch

    random = np.random.default_rng(0)
    uniforms = [np.empty((REPETITIONS, len(one.points))) for one in splits]
    for repetition in range(REPETITIONS):
        of_point = random.random(n)
        for one, own in zip(splits, uniforms, strict=True):
            own[repetition] = of_point[one.points]
    return [
        forecast.redraw(torch.from_numpy(own)).labels
        for forecast, own in zip(forecasts, uniforms, strict=True)
    ]


def _worst(
    utilities: Any,
    forecasts: Sequence[Forecast],
    splits: Sequence[HeldOut],
    drawn: Sequence[Tensor],
) -> dict[str, Any]:
    from metrics.diagram import Predictions, predictions_of, utility_diagram
    from pipeline.reporting.failures import diagram_json

    errors = [
        utilities.errors(forecast, forecast.outcomes(one.labels))[0].numpy()
        for forecast, one in zip(forecasts, splits, strict=True)
    ]
    index = int(np.mean(errors, axis=0).argmax())
    parts = [
        predictions_of(utilities, forecast, one.labels, index, labels)
        for forecast, one, labels in zip(forecasts, splits, drawn, strict=True)
    ]
    diagram = utility_diagram(Predictions.pooled(parts), points=81)
    return {
        "utility": index,
        "low": diagram.worst.low,
        "high": diagram.worst.high,
        "share": diagram.share,
        "gap": diagram.gap,
        "diagram": diagram_json(diagram),
    }


def utility_name(metric: str, index: int, class_names: Sequence[str], exponents: Any) -> str:
    """What a person calls utility `index` of the class behind a metric."""
    if metric == "u_cwe":
        known = index < len(class_names)
        return f"class {class_names[index]}" if known else f"class {index}"
    if metric == "u_topk":
        return "most probable class" if index == 0 else f"top {index + 1}"
    if metric == "u_tce":
        return "most probable class"
    if metric == "u_dcg":
        return f"discount exponent {exponents[index]:g}"
    return f"user {index + 1}"


def class_names_of(settings: Settings) -> Sequence[str]:
    """Names of the classes, from the logits' sidecar or the data set; none where unknown."""
    record = logits_record(settings)
    known = record.get("class_names") or settings["benchmark"]["source"].get("dataset")
    if not known:
        return ()
    try:
        return class_names(known)
    except InputError:
        return ()
