"""Compare our speed with the plain definitions and with other packages, and check the answers.

python -m utility_calibration.scripts.speed --peers        with probmetrics and others
python -m utility_calibration.scripts.speed --cases ecdf   titles with this word
python -m utility_calibration.scripts.speed --quick        small sizes
python -m utility_calibration.scripts.speed --threads 2    on two threads

Writes <output>/speed_cpu.{csv,md} at the end, speed_cpu_2.{csv,md} on two threads. Exit code 1
means that an answer of ours is not that of the definition, or that a contender failed.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from threadpoolctl import ThreadpoolController

from utility_calibration.metrics.kernels.threads import set_threads
from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.harness.command import Parser
from utility_calibration.pipeline.harness.machine import core_count, versions
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.wording import markdown_table

from .cases import CASES, OURS, Case, Size, data
from .peers import PEERS

QUICK = Size(1500, 20, utilities=50)
MIN_SECONDS = 0.5
"""A contender runs until its runs together take this long, at least once."""
LEGEND = """\
The time is the median of runs that together take at least half a second, on {threads}, after a
run at a small size that does not count. Speed-up: time of the first contender of the block divided
by this one's. Difference: largest absolute difference of any number of the answer from the first
contender's; of a fit, by how much the likelihood is worse; – where the contender answers another
question. "plain" is the definition in NumPy and SciPy."""
HEADINGS = ("Work", "Size", "Contender", "Median", "Speed-up", "Difference")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, print; return the exit code."""
    options = parse(arguments)
    absent = [name for name in PEERS if options.peers and find_spec(name) is None]
    if absent:
        say(f"--peers: not installed: {', '.join(absent)} (pip install -r requirements-peers.txt)")
    warnings.simplefilter("ignore")  # of other packages about their own code
    wanted = [word.lower() for word in options.cases]
    cases = [case for case in CASES if any(word in case.title.lower() for word in wanted)]
    work = [(case, size) for case in cases for size in ([QUICK] if options.quick else case.sizes)]
    rows: list[dict[str, Any]] = []
    for number, (case, size) in enumerate(work, 1):
        say(f"[{number}/{len(work)}] {case.title}, {size}")
        for row in measured(case, size, options.peers, options.threads):
            rows.append(row)
            say("    " + "  ".join(cells(row)[2:]))
    table = pd.DataFrame(rows)
    end = f"_{options.threads}" if options.threads > 1 else ""
    path = options.output / f"speed_cpu{end}.csv"
    write_text(path, table.assign(machine=machine()).to_csv(index=False, float_format="%.4g"))
    notes = [f"- {case.title}: {case.note}." for case in cases if case.note]
    write_text(path.with_suffix(".md"), markdown(rows, notes, options.threads))
    say(f"Written to {options.output}")
    return int(not table["agrees"].all())


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument("--peers", action="store_true", help="also measure other packages")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute")
    parser.add_argument("--threads", type=int, default=1, help="of each contender (default: 1)")
    titles = ", ".join(case.title for case in CASES)
    parser.add_argument("--cases", nargs="+", default=[""], metavar="WORD", help=f"of {titles}")
    parser.add_argument(
        "--output", type=Path, help="folder (default: results/speed; with --quick out/speed)"
    )
    options = parser.parse_args(arguments)
    if options.threads < 1:
        parser.error(f"--threads: {options.threads}, expected a number from 1 on")
    options.output = options.output or Path("out/speed" if options.quick else "results/speed")
    return options


def share_threads(name: str, threads: int) -> None:
    """Let a contender work on so many threads: ours by its own, others by BLAS, OpenMP and torch.

    Libraries that a contender imports later have their own defaults, so this follows a first run.
    """
    if name.startswith(OURS):
        set_threads(threads)
        return
    ThreadpoolController().limit(limits=threads)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def measured(
    case: Case, size: Size, with_peers: bool, threads: int = 1
) -> Iterator[dict[str, Any]]:
    """Time every contender that can run here, and compare its answer with the first one's."""
    reference, first = None, float("nan")
    peers = [name for name in PEERS if with_peers and find_spec(name)]
    names = [name for name in case.contenders if name in peers or name not in PEERS]
    for name in names:
        row = {"case": case.title, "size": str(size), "contender": name}
        inputs, run = data(size), case.contenders[name]
        times: list[float] = []
        try:
            run(data(_small(size)))  # imports and compiles
            share_threads(name, threads)
            while sum(times) < MIN_SECONDS:
                began = time.perf_counter()
                result = run(inputs)
                times.append(time.perf_counter() - began)
            answer = case.answer(inputs, result)
        except Exception as error:  # another package may raise anything
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            yield {**row, "failure": reason, "agrees": False}
            continue
        seconds = median(times)
        if reference is None:
            reference, first = answer, seconds
        is_other = name in case.others
        difference = float("nan") if is_other else case.difference(reference, answer)
        agrees = is_other or name in PEERS or difference <= case.tolerance
        of_first = {"seconds": seconds, "speedup": first / seconds, "difference": difference}
        yield {**row, **of_first, "agrees": agrees}


def cells(row: dict[str, Any]) -> list[str]:
    """A row as the text of its cells, in the order of HEADINGS."""
    names = [row["case"], row["size"], row["contender"]]
    if "failure" in row:
        return [*names, f"failed: {row['failure']}", "", ""]
    agreement = "" if row["agrees"] else " DISAGREES"
    difference = "–" if math.isnan(row["difference"]) else f"{row['difference']:.1e}{agreement}"
    return [*names, shown_time(row["seconds"]), f"{row['speedup']:.3g}×", difference]


def _small(size: Size) -> Size:
    """The size of the run that does not count; two classes stay two."""
    return QUICK._replace(classes=2) if size.classes == 2 else QUICK


def shown_time(seconds: float) -> str:
    """Seconds in the unit of the tables: s, ms or us, with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def markdown(rows: Sequence[dict[str, Any]], notes: Sequence[str], threads: int = 1) -> str:
    """The table and its notes; only the first line of a block names work and size."""
    lines, last = [], [""]
    for line in map(cells, rows):
        lines.append(["", "", *line[2:]] if line[:2] == last else line)
        last = line[:2]
    table = markdown_table(HEADINGS, lines, text=3)
    legend = LEGEND.format(threads="one thread" if threads == 1 else f"{threads} threads")
    return "\n\n".join(["# Speed", legend, machine(), table, "\n".join(notes)]) + "\n"


def machine() -> str:
    """Processor, cores and versions, in one line."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    entries = {key: value.strip() for key, value in re.findall(r"^([\w ]+?)\s*:(.*)$", text, re.M)}
    # Cloud machines hide the name of the processor, but not its family and model number.
    name, family, model = (entries.get(key, "") for key in ("model name", "cpu family", "model"))
    processor = f"{name or platform.machine()} (family {family}, model {model})"
    core = os.environ.get("OPENBLAS_CORETYPE")
    kernels = [f"OPENBLAS_CORETYPE={core}"] if core else []
    packages = versions() | {peer: version(peer) for peer in PEERS if find_spec(peer)}
    named = map(" ".join, packages.items())
    return ", ".join([processor, f"{core_count()} cores", *named, *kernels])


if __name__ == "__main__":
    sys.exit(main())
