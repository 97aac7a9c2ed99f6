"""What of a suite is missing or stale, as jobs of some minutes, wherever `hydra/launcher` says.

python -m pipeline.sweep suite=paper hydra/launcher=slurm
python -m pipeline.sweep suite=cifar hydra/launcher=cores jobs=1 sweep.minutes_per_job=5

Logits come first, then fits with their evaluation and the appendix study, the report last; what
`dvc repro` tracks is written, so that it finds all done (with sweep.report=false all but the report
and the study's figures). A job takes units of one benchmark, all where it runs right here: it reads
logits once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from pipeline.dynamics import dynamics_tasks, is_done, of_suite, run_dynamics, run_studies
from pipeline.evaluate import fit_and_evaluate, run_evaluate, warm_up
from pipeline.fit import fit_tasks, run_fit
from pipeline.harness.artifacts import read_json_if_whole
from pipeline.harness.columns import columns_of
from pipeline.harness.command import UnitsFailed, command
from pipeline.harness.engines import (
    SECONDS_BETWEEN_LOOKS,
    Ended,
    check_failures,
    cores_of_a_job,
    failure_lines,
    run_and_tell,
    runs_here,
    writes_logs,
)
from pipeline.harness.progress import say
from pipeline.harness.receipts import receipt_path
from pipeline.harness.runner import side_by_side, warning_lines, workers_starting
from pipeline.harness.unit_stage import check_columns
from pipeline.harness.units import Request, Unit, launcher_and_logs
from pipeline.logits import is_current, precomputed_file, run_logits
from pipeline.plan import estimates, is_large
from pipeline.status import DONE, RUNNING, states

MANY_UNITS = 20
"""From so many on other processes pay, however small the units are."""


@dataclass(frozen=True)
class LogitsJob:
    """The logits of one benchmark."""

    request: Request
    benchmark: str

    def __call__(self) -> None:
        run_logits([self.request.settings(self.benchmark)])

    def __str__(self) -> str:
        return f"logits {self.benchmark}"


@dataclass(frozen=True)
class UnitsJob:
    """Units of one benchmark, (calibrator, split) each, whose logits are read once."""

    request: Request
    benchmark: str
    members: tuple[tuple[str, int], ...]

    def units(self) -> list[Unit]:
        """Its units, configured as the whole request has them."""
        names = tuple(dict.fromkeys(name for name, _ in self.members))
        narrow = replace(self.request, benchmarks=(self.benchmark,), calibrators=names)
        return [one for one in narrow.units() if (one.calibrator, one.split) in set(self.members)]

    def __call__(self) -> None:
        tasks = fit_tasks(self.units())
        outcomes = side_by_side(f"units of {self.benchmark}", fit_and_evaluate, tasks)
        failed = [one for one in outcomes if one.error is not None]
        for one in failed:
            say(f"{one.details}failed: {one.task}: {one.error}")
        if failed:
            reasons = dict.fromkeys(str(one.error) for one in failed)
            raise UnitsFailed(f"{len(failed)} of {len(tasks)} units failed: {'; '.join(reasons)}")

    def __str__(self) -> str:
        first, last = self.members[0], self.members[-1]
        ends = f"{first[0]} split {first[1]}"
        return f"{self.benchmark} {ends}" + (
            f" … {last[0]} split {last[1]} ({len(self.members)} units)" if last != first else ""
        )


@dataclass(frozen=True)
class DynamicsJob:
    """The appendix study on one benchmark; its figures are drawn at the end."""

    request: Request
    benchmark: str

    def __call__(self) -> None:
        run_studies(self.request, [self.request.settings(self.benchmark)])

    def is_done(self) -> bool:
        """Whether nothing of it is to do."""
        settings = self.request.settings(self.benchmark)
        return all(is_done(task) for task in dynamics_tasks(settings, self.request.splits[0]))

    def __str__(self) -> str:
        return f"dynamics {self.benchmark}"


@command
def main(config: DictConfig) -> None:
    """Sweep over what the command line asks for, then write the report unless told otherwise."""
    request = Request.from_hydra(config)
    sweep(request, config)
    if not config.sweep.report:
        return
    if request.whole_suite and (study := of_suite(request, config)).benchmarks:
        run_dynamics(study)
    if config.split is None:
        from pipeline.report import run_report  # imports torch: while this sweeps, others do

        run_report(request)


def sweep(request: Request, config: DictConfig) -> None:
    """Do what is missing or stale of logits, units and studies; print what became of it.

    Jobs outdate the report, and those of the study its figures: their receipts are removed.

    Raises:
        UnitsFailed: jobs that failed, after all others are done.
    """
    began = time.time()
    launcher, folder = launcher_and_logs(HydraConfig.get())
    options: Any = OmegaConf.to_container(config.sweep, resolve=True)
    settings = dict(zip(request.benchmarks, request.benchmark_settings()))
    gpu = launcher | options["gpu"]
    seconds = math.inf if runs_here(launcher) else 60 * options["minutes_per_job"]
    made = [name for name, own in settings.items() if not is_current(own)]
    every = request.units()
    with workers_ahead(every) if made and runs_here(launcher) else nullcontext():
        for name in made:  # what is wrong for all is told once, and before hours of work
            columns_of(settings[name])
            precomputed_file(settings[name])
        ended = list(run_and_tell([([LogitsJob(request, name) for name in made], gpu)], folder))
    lost = {one.job.benchmark for one in ended if one.error}
    units = {n: own for n, own in _by_benchmark(request, every).items() if n not in lost}
    waiting, held = _waiting(units)
    check_columns([unit for own in waiting.values() for unit in own])
    large = {name for name in settings if options["gpu"] and is_large(settings[name])}
    study = of_suite(request, config) if request.whole_suite else replace(request, benchmarks=())
    studies = [DynamicsJob(request, name) for name in study.benchmarks if name not in lost]
    jobs: list[Any] = [job for job in studies if not job.is_done()]
    if request.whole_suite and (jobs or waiting or held):
        for name in ("dynamics", "report") if jobs else ("report",):
            receipt_path(next(iter(settings.values())), request.suite, name).unlink(missing_ok=True)
    while waiting or jobs or held:
        for name, own in waiting.items():
            at_once = units_at_once(config.jobs, gpu if name in large else launcher)
            jobs += chunks(request, name, own, seconds, at_once)
        on_gpus = [job for job in jobs if job.benchmark in large]
        others = [job for job in jobs if job.benchmark not in large]
        ended += run_and_tell([(on_gpus, gpu), (others, launcher)], folder)
        waiting, held, jobs = _released(held), {}, []
    every = [unit for own in units.values() for unit in own]
    for line in closing(ended, every, began, writes_logs(launcher)):
        say(line)
    check_failures(ended)
    run_logits(list(settings.values()), request)
    run_fit(every, request)
    run_evaluate(every, request)


def workers_ahead(units: Sequence[Unit]) -> AbstractContextManager[None]:
    """Have the processes for `units` load what these need, while this one makes their logits.

    Not beside a network's passes over data, which take all cores and longer than workers wait.
    """
    networks = any("batch_size" in unit.settings["benchmark"]["source"] for unit in units)
    if networks or len(units) < MANY_UNITS:
        return nullcontext()
    targets = dict.fromkeys(unit.settings["calibrator"]["_target_"] for unit in units)
    return workers_starting(units[0].settings, len(units), partial(warm_up, tuple(targets)))


UnitsOf = dict[str, list[Unit]]
"""Per benchmark asked for, some of its units."""


def _by_benchmark(request: Request, every: Sequence[Unit]) -> UnitsOf:
    each = len(every) // len(request.benchmarks)
    return {
        name: list(every[number * each : (number + 1) * each])
        for number, name in enumerate(request.benchmarks)
    }


def _waiting(units: UnitsOf) -> tuple[UnitsOf, UnitsOf]:
    """Those that are neither done nor under way (`force`: all), and those that others work on."""
    waiting: UnitsOf = {}
    held: UnitsOf = {}
    for name, own in units.items():
        for state in states(own):
            if state.unit.settings["force"] or state.name not in (DONE, RUNNING):
                waiting.setdefault(name, []).append(state.unit)
            elif state.name == RUNNING:
                held.setdefault(name, []).append(state.unit)
    return waiting, held


def _released(held: UnitsOf) -> UnitsOf:
    """Wait for those who work on `held`; what they leave undone is for jobs, not for us."""
    if held:
        say(f"waiting: others work on {sum(map(len, held.values()))} of the units")
    while True:
        left, still = _waiting(held)
        if not still:
            return left
        time.sleep(SECONDS_BETWEEN_LOOKS)


def units_at_once(jobs: int | str, launcher: Mapping[str, Any]) -> int | None:
    """How many units, or cores on a large one, a job keeps busy; None: one, timed by the clock."""
    if launcher.get("gpus_per_node"):
        return None
    cores = cores_of_a_job(launcher)
    return cores if jobs == "auto" else max(1, min(cores, int(jobs)))


def chunks(
    request: Request, benchmark: str, units: Sequence[Unit], seconds: float, at_once: int | None
) -> list[UnitsJob]:
    """Jobs of about `seconds` from units of one benchmark, by what these are expected to take.

    at_once: see `units_at_once`.
    """
    pace = {
        calibrator: one.seconds if at_once is None else one.core_seconds / at_once
        for (_, calibrator), one in estimates(units).items()
    }
    jobs: list[list[Unit]] = [[]]
    filled = 0.0
    for unit in units:
        if jobs[-1] and filled + pace[unit.calibrator] > seconds:
            jobs.append([])
            filled = 0.0
        jobs[-1].append(unit)
        filled += pace[unit.calibrator]
    return [
        UnitsJob(request, benchmark, tuple((one.calibrator, one.split) for one in job))
        for job in jobs
        if job
    ]


def closing(
    ended: Sequence[Ended], units: Sequence[Unit], began: float, warned: bool = False
) -> Iterator[str]:
    """What became of the jobs, equal errors told once, and what units took since `began`.

    `warned`: with what they warned of, where that stands in jobs' logs alone.
    """
    yield from failure_lines(ended)
    runs = [(unit, one.run) for unit in units for one in (unit.files.fit, unit.files.scores)]
    fresh = [(u, path) for u, path in runs if path.is_file() and path.stat().st_mtime >= began]
    notes = [(unit, note) for unit, path in fresh if (note := read_json_if_whole(path))]
    if warned:
        yield from warning_lines(
            (unit, line) for unit, note in notes for line in note.get("warnings", [])
        )
    if notes:
        seconds = sum(note["seconds"] for _, note in notes)
        peak = max(note["peak_megabytes"] for _, note in notes)
        yield f"used: {seconds / 60:.1f} process minutes, at most {peak} MB in one process"


if __name__ == "__main__":
    main()
