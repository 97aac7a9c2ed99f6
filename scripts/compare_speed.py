"""Compare our speed with the plain definitions and with other packages, answers checked.

python scripts/compare_speed.py                     everything, up to an hour on two cores
python scripts/compare_speed.py --peers             also probmetrics, torchmetrics and netcal
python scripts/compare_speed.py --device cuda       also ours on the GPU
python scripts/compare_speed.py --cases ecdf growth some of it; --quick: small sizes, a minute

Written after every measurement, so it may be interrupted: <output>/speed_<device>.{csv,md}, and
<output>/growth_<device>.{csv,pdf,svg,png}. Cases that are not measured again stay in the table if
they were measured on the same machine with the same versions. Exit code 1: an answer disagrees, or
ours was not checked because it or the reference failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a plain checkout, not installed

from pipeline.harness.artifacts import write_text
from pipeline.harness.command import Parser
from pipeline.harness.progress import console, say
from scripts.speed import growth, machine, report
from scripts.speed.calibrator_cases import calibrator_cases
from scripts.speed.case import OURS, Answer, Case, Contender, agreement
from scripts.speed.inputs import arrays
from scripts.speed.measure import RUNS, Failed, is_installed, measure
from scripts.speed.metric_cases import metric_cases

GROWTH = "growth"


@dataclass(frozen=True)
class Run:
    """What this call measures, and where it writes."""

    peers: bool
    gpu: bool
    runs: int
    folder: Path
    stem: str
    machine: str

    def contenders(self, case: Case) -> list[Contender]:
        """Those that can run here and were asked for; whom a target names before ours."""
        against = case.target.against if case.target else None
        first = case.contenders[0].name
        return [
            contender
            for contender in sorted(
                case.contenders, key=lambda one: (one.name != first, one.name != against)
            )
            if (self.gpu or contender.device == "cpu")
            and (self.peers or contender.name not in machine.PEERS)
            and is_installed(contender)
        ]


def parse(arguments: Sequence[str] | None, keys: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument("--peers", action="store_true", help="measure requirements-peers.txt too")
    parser.add_argument("--quick", action="store_true", help="small sizes, no targets")
    parser.add_argument(
        "--cases", nargs="+", choices=keys, metavar="CASE", help=f"some of: {' '.join(keys)}"
    )
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs per median (default {RUNS})")
    parser.add_argument(
        "--output",
        type=Path,
        help="folder (default: results/speed; with --quick out/speed, which git ignores)",
    )
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs: at least 1")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, print; return the exit code."""
    keys = [*dict.fromkeys(case.key for case in all_cases(quick=False)), GROWTH]
    options = parse(arguments, keys)
    gpu_name = machine.gpu() if options.device == "cuda" else None
    if options.device == "cuda" and gpu_name is None:
        say("--device cuda: no CUDA device (or a torch without CUDA); measuring the CPU only")
    if options.peers and machine.missing_peers():
        absent = ", ".join(machine.missing_peers())
        say(f"--peers: not installed, left out: {absent} (pip install -r requirements-peers.txt)")
    run = Run(
        peers=options.peers,
        gpu=gpu_name is not None,
        runs=options.runs,
        folder=options.output or Path("out/speed" if options.quick else "results/speed"),
        stem="cuda" if gpu_name else "cpu",
        machine="; ".join(filter(None, (machine.processor(), gpu_name, machine.versions()))),
    )
    say(run.machine)
    chosen = options.cases or keys
    cases = [case for case in all_cases(options.quick) if case.key in chosen]
    try:
        rows = compare(cases, run)
        growth_rows = compare_growth(run, options.quick) if GROWTH in chosen else []
    except KeyboardInterrupt:
        say(f"\nStopped; what was measured until now is in {run.folder}")
        return 130
    return closing(rows, growth_rows, run)


def all_cases(quick: bool) -> list[Case]:
    """Every case, those of the same shape one after the other where it spares drawing inputs."""
    return [*metric_cases(quick), *calibrator_cases(quick)]


def compare(cases: Sequence[Case], run: Run) -> list[report.Row]:
    """Measure the cases; return the rows of this run."""
    path = run.folder / f"speed_{run.stem}.csv"
    again = {(case.key, str(case.size)) for case in cases}
    kept = [
        row
        for row in report.read_csv(path)
        if row.machine == run.machine and (row.case, row.size) not in again
    ]
    rows: list[report.Row] = []
    for number, case in enumerate(cases, 1):
        say(f"[{number}/{len(cases)}] {case.title}, {case.size}")
        for row in measured_rows(case, run):
            rows.append(row)
            say("    " + "  ".join(filter(None, report.cells(row)[2:])))
            table = in_order([*kept, *rows])
            report.write_csv(table, path)
            write_text(path.with_suffix(".md"), report.markdown(table))
    return rows


def measured_rows(case: Case, run: Run) -> Iterator[report.Row]:
    """Measure every contender of a case and compare its answer with the reference's.

    Without the reference's answer nothing is compared: `agrees` is None then.
    """
    medians: dict[str, float] = {}
    answers: dict[str, Answer] = {}
    inputs, warm_up = arrays(case.size), arrays(case.warm_up)
    for contender in run.contenders(case):
        outcome: report.Outcome
        try:
            measurement, answer = measure(contender, inputs, warm_up, run.runs)
        except Failed as error:
            outcome = f"failed: {error}"
        else:
            medians[contender.name], answers[contender.name] = measurement.median, answer
            reference = answers.get(case.reference)
            if reference is None or contender.name == case.reference:
                outcome = measurement, None
            else:
                outcome = measurement, agreement(case, contender, reference, answer)
        yield report.row(case, contender.name, outcome, medians, run.machine)


def in_order(rows: Sequence[report.Row]) -> list[report.Row]:
    """Rows of several runs in the order of the cases."""
    known = [(case.key, str(case.size)) for quick in (False, True) for case in all_cases(quick)]
    place = {key: number for number, key in enumerate(known)}
    return sorted(rows, key=lambda row: place.get((row.case, row.size), len(place)))


def compare_growth(run: Run, quick: bool) -> list[report.Row]:
    """Measure growth in n, C and M; write the points as they come, then the figure."""
    points: list[growth.Point] = []
    all_rows: list[report.Row] = []
    say(f"{growth.TITLE}: growth")
    for axis, value, case in growth.cases(quick):
        rows = list(measured_rows(case, run))
        all_rows += rows
        for row in rows:
            if row.median is not None:
                point = growth.Point(axis.symbol, value, case.size, row.contender, row.median)
                points.append(point)
        times = ", ".join(f"{row.contender} {report.seconds(row.median)}" for row in rows)
        say(f"    {case.size}: {times}")
        growth.write_csv(points, run.machine, run.folder / f"growth_{run.stem}.csv")
    growth.draw(points, run.machine, quick, run.folder, f"growth_{run.stem}")
    return all_rows


def closing(rows: Sequence[report.Row], growth_rows: Sequence[report.Row], run: Run) -> int:
    """Print the table and what is wrong in it or in the growth; return the exit code."""
    if rows:
        report.print_table(rows, console)
    both = [*rows, *growth_rows]
    for row in both:
        work = f"{row.title}, {row.size}, {row.contender}"
        if row.failure:
            say(f"{work}: {row.failure}")
        elif row.agrees is False:
            say(f"{work}: the answer DISAGREES")
        elif row.agrees is None and not row.is_reference:
            say(f"{work}: the answer was not checked, {row.reference} gave none")
        if row.met is False:
            say(f"{work}: target missed ({row.target})")
    say(f"Written to {run.folder}")
    return int(any(is_wrong(row) for row in both))


def is_wrong(row: report.Row) -> bool:
    """Whether an answer disagrees, or the reference failed, or ours has not been checked."""
    if row.is_reference:
        return bool(row.failure)
    return row.agrees is False or (row.agrees is None and row.contender.startswith(OURS))


if __name__ == "__main__":
    sys.exit(main())
