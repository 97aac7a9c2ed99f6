"""Compare our speed with the plain definitions and with other packages, and check the answers.

python scripts/compare_speed.py                   everything, up to an hour on two cores
python scripts/compare_speed.py --peers           also probmetrics, torchmetrics and netcal
python scripts/compare_speed.py --device cuda     also ours on the GPU
python scripts/compare_speed.py --cases ecdf u_cwe    these only; --quick: small sizes, a minute

Writes <output>/speed_<device>.{csv,md} at the end. Exit code 1 means that an answer disagrees or
that a contender failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if not __package__:  # started as a file of a clone
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
import torch
from torch.utils.benchmark import Timer

from pipeline.harness.artifacts import write_text
from pipeline.harness.command import Parser
from pipeline.harness.machine import core_count
from pipeline.harness.progress import say
from pipeline.reporting.wording import markdown_table
from scripts.speed.cases import CASES, OURS, Case, Size, data

QUICK = Size(1500, 20, utilities=50)

MIN_SECONDS = 0.5
"""A contender runs until its runs together take this long, at least once after a warm-up."""
PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn")
PEERS = ("probmetrics", "torchmetrics", "netcal")
LEGEND = """\
The time is the median of runs that together take at least half a second, after one run that does
not count, on one thread. Speed-up: time of the first contender of the block divided by this one's.
Difference: largest absolute difference of any number of the answer from the first contender's, or
by how much the likelihood is worse. "plain" is the definition in NumPy and SciPy."""
HEADINGS = ("Work", "Size", "Contender", "Median", "Speed-up", "Difference")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, print; return the exit code."""
    options = parse(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        say("--device cuda: no CUDA device (or a torch without CUDA); measuring the CPU only")
        options.device = "cpu"
    if absent := [name for name in PEERS if options.peers and find_spec(name) is None]:
        say(f"--peers: not installed: {', '.join(absent)} (pip install -r requirements-peers.txt)")
    cases = [case for case in CASES if case.key in (options.cases or [case.key])]
    warnings.simplefilter("ignore")  # of other packages about their own code
    rows: list[dict[str, Any]] = []
    work = [(case, size) for case in cases for size in ([QUICK] if options.quick else case.sizes)]
    for number, (case, size) in enumerate(work, 1):
        say(f"[{number}/{len(work)}] {case.title}, {size}")
        for row in measured(case, size, options.device, options.peers):
            rows.append(row)
            say("    " + "  ".join(cells(row)[2:]))
    table = pd.DataFrame(rows)
    path = options.output / f"speed_{options.device}.csv"
    write_text(path, table.assign(machine=machine()).to_csv(index=False, float_format="%.4g"))
    write_text(path.with_suffix(".md"), markdown(rows, cases))
    say(f"Written to {options.output}")
    return int(not table["agrees"].all())


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    keys = [case.key for case in CASES]
    parser = Parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument("--peers", action="store_true", help="also measure other packages")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute")
    parser.add_argument(
        "--cases", nargs="+", choices=keys, metavar="CASE", help=f"only these: {' '.join(keys)}"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder (default: results/speed; with --quick out/speed, which git ignores)",
    )
    options = parser.parse_args(arguments)
    options.output = options.output or Path("out/speed" if options.quick else "results/speed")
    return options


def measured(case: Case, size: Size, device: str, with_peers: bool) -> Iterator[dict[str, Any]]:
    """Time every contender that can run here, and compare its answer with the first one's."""
    reference, first = None, float("nan")
    names = [(name, "cpu") for name in case.contenders if with_peers or name not in PEERS]
    names += [(OURS, "cuda")] if device == "cuda" else []
    for name, where in names:
        shown = f"{name} (GPU)" if where == "cuda" else name
        row = {"case": case.key, "title": case.title, "size": str(size), "contender": shown}
        if name in PEERS and find_spec(name) is None:
            continue
        inputs, run = data(size, where), case.contenders[name]
        try:
            answer = case.answer(inputs, run(inputs))  # imports and compiles, too
            timer = Timer("run(inputs)", globals={"run": run, "inputs": inputs})
            seconds = timer.blocked_autorange(min_run_time=MIN_SECONDS).median
        except Exception as error:  # another package may raise anything
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            yield {**row, "failure": reason, "agrees": False}
            continue
        if reference is None:
            reference, first = answer, seconds
        difference = case.difference(reference, answer)
        tolerance = case.peer_tolerance if name in PEERS else case.tolerance
        yield {
            **row,
            "seconds": seconds,
            "speedup": first / seconds,
            "difference": difference,
            "agrees": difference <= tolerance,
        }


def cells(row: dict[str, Any]) -> list[str]:
    """A row as the text of its cells, in the order of HEADINGS."""
    names = [row["title"], row["size"], row["contender"]]
    if "failure" in row:
        return [*names, f"failed: {row['failure']}", "", ""]
    agreement = "" if row["agrees"] else " DISAGREES"
    numbers = f"{row['speedup']:.3g}×", f"{row['difference']:.1e}{agreement}"
    return [*names, in_words(row["seconds"]), *numbers]


def in_words(seconds: float) -> str:
    """A time in a unit that leaves three digits."""
    factor, unit = next(
        ((f, unit) for f, unit in ((1, "s"), (1e-3, "ms")) if seconds >= f), (1e-6, "µs")
    )
    return f"{seconds / factor:.3g} {unit}"


def markdown(rows: Sequence[dict[str, Any]], cases: Sequence[Case]) -> str:
    """The table and its notes; only the first line of a block names title and size."""
    lines: list[list[str]] = []
    last: list[str] = []
    for row in rows:
        line = cells(row)
        lines.append(["", "", *line[2:]] if line[:2] == last else line)
        last = line[:2]
    notes = sorted({f"- {case.title}: {case.note}." for case in cases if case.note})
    parts = ["# Speed", LEGEND, machine(), markdown_table(HEADINGS, lines, text=3)]
    return "\n\n".join([*parts, "\n".join(notes)]) + "\n"


def machine() -> str:
    """Processor, cores, GPU and versions, in one line."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    # Cloud machines hide the name of the processor, but not its family and model number.
    keys = ("model name", "cpu family", "model")
    matches = [re.search(rf"^{key}\s*:\s*(.+)$", text, re.M) for key in keys]
    name, family, model = (match[1].strip() if match else "" for match in matches)
    processor = f"{name or platform.machine()} (family {family}, model {model})"
    gpu = [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    packages = [*PACKAGES, *(peer for peer in PEERS if find_spec(peer))]
    core = os.environ.get("OPENBLAS_CORETYPE")
    kernels = [f"OPENBLAS_CORETYPE={core}"] if core else []
    versions = [f"{package} {version(package)}" for package in packages]
    python = f"Python {platform.python_version()}"
    return ", ".join([processor, f"{core_count()} cores", *gpu, python, *versions, *kernels])


if __name__ == "__main__":
    sys.exit(main())
