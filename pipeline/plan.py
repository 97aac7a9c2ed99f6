"""What units are expected to take, for `status --plan` and for the jobs of `sweep`.

By the splits of the same pair of benchmark and calibrator that ran here (stale ones too), else by
results/speed/suite_times*.csv, which are committed, else by `sweep.seconds_of_unknown`.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from pipeline.harness.artifacts import read_json_if_whole
from pipeline.harness.cached_logits import read_sidecar
from pipeline.harness.command import CONF
from pipeline.harness.units import Settings, Unit

TIMES = CONF.parent / "results" / "speed"
HERE, COMMITTED, UNKNOWN = "recorded here", "by suite_times*.csv", "never timed"

Pair = tuple[str, str]
"""Benchmark and calibrator."""


@dataclass(frozen=True)
class Estimate:
    """Of one unit, fit and evaluation: `source` says by what."""

    source: str
    seconds: float
    core_seconds: float
    megabytes: float = 0.0
    """The process's largest memory, and below the bytes of the unit's arrays, where recorded."""
    size: float = 0.0


def estimates(units: Sequence[Unit]) -> dict[Pair, Estimate]:
    """One estimate per pair among `units`."""
    first = {(unit.benchmark, unit.calibrator): unit for unit in reversed(units)}
    return {pair: _recorded(unit) or _otherwise(unit) for pair, unit in first.items()}


def _recorded(unit: Unit) -> Estimate | None:
    runs, sizes = [], []
    for split in range(unit.settings["splits"]["count"]):
        files = replace(unit, split=split).files
        archives = files.fit, files.scores
        fit, evaluation = (read_json_if_whole(one.run) for one in archives)
        if fit is not None and evaluation is not None:
            runs += [fit, evaluation]
            sizes.append(sum(one.path.stat().st_size for one in archives if one.path.exists()))
    if not sizes:
        return None
    seconds = sum(run["seconds"] for run in runs)
    core_seconds = sum(run.get("core_seconds", run["seconds"]) for run in runs)
    peak = max(run.get("peak_megabytes", 0) for run in runs)
    return Estimate(HERE, seconds / len(sizes), core_seconds / len(sizes), peak, fmean(sizes))


def _otherwise(unit: Unit) -> Estimate:
    seconds = committed_seconds().get((unit.benchmark, unit.calibrator))
    if seconds is not None:
        return Estimate(COMMITTED, seconds, seconds)
    seconds = float(unit.settings["sweep"]["seconds_of_unknown"])
    return Estimate(UNKNOWN, seconds, seconds)


@cache
def committed_seconds() -> dict[Pair, float]:
    """Core seconds per unit of the pairs that were fitted and evaluated for the file.

    They stand for those of the clock, too: a unit on one core takes as long.
    """
    stages: dict[Pair, dict[str, float]] = {}
    for path in sorted(TIMES.glob("suite_times*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                stage = stages.setdefault((row["benchmark"], row["calibrator"]), {})
                stage[row["stage"]] = float(row["seconds"]) / int(row["splits"])
    return {
        pair: sum(own.values()) for pair, own in stages.items() if {"fit", "evaluate"} <= set(own)
    }


def is_large(settings: Settings) -> bool:
    """Whether a benchmark's units go to a GPU where there is one (`sweep.gpu_from_classes`)."""
    record = read_sidecar(settings) or settings["benchmark"]
    return int(record.get("classes") or 0) >= settings["sweep"]["gpu_from_classes"]


def plan_lines(waiting: Sequence[Unit], options: Settings) -> Iterator[str]:
    """What the units not done take by `estimates`; those that are large on `sweep.gpus`, if any."""
    expected = estimates(waiting)
    on_gpus = waiting if options.get("gpus") else []
    large = {unit.benchmark: is_large(unit.settings) for unit in on_gpus}
    each = [(expected[u.benchmark, u.calibrator], large.get(u.benchmark, False)) for u in waiting]
    sources = Counter(one.source for one, _ in each)
    told = [f"{sources[name]} {name}" for name in (HERE, COMMITTED, UNKNOWN) if sources[name]]
    if sources[UNKNOWN]:
        told[-1] += f" (taken as {options['seconds_of_unknown']} s each)"
    yield f"plan: {len(waiting)} units to run" + (f": {', '.join(told)}" if told else "")
    cores = sum(one.core_seconds for one, on_gpu in each if not on_gpu) / 3600
    gpus = sum(one.seconds for one, on_gpu in each if on_gpu) / 3600
    yield f"plan: {cores:.2f} core-hours, {gpus:.2f} GPU-hours" + (
        f" ({gpus / options['gpus']:.2f} hours on {options['gpus']} GPUs)" if gpus else ""
    )
    known = [one for one, _ in each if one.source == HERE]
    if known:
        whose = "" if len(known) == len(each) else f" of {len(known)} of them"
        yield (
            f"plan: at most {max(one.megabytes for one in known):.0f} MB in a process, "
            f"{sum(one.size for one in known) / 1e6:.1f} MB of arrays{whose}"
        )
