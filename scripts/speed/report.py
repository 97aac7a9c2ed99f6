"""The measured table: rows, CSV, Markdown and terminal; written anew after every measurement."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from pipeline.harness.artifacts import write_text
from pipeline.reporting.markdown import markdown_table
from scripts.speed.case import OURS, OURS_GPU, Agreement, Case, Target
from scripts.speed.measure import MIB, RUNS, SLOW_SECONDS, Measurement

Outcome = tuple[Measurement, Agreement | None] | str
"""What came of a contender: None instead of an agreement: not compared. A text: why it failed."""


@dataclass(frozen=True)
class Row:
    """One contender of one case. Times in seconds, memory in MiB, None: does not apply."""

    case: str
    title: str
    size: str
    n: int
    classes: int
    utilities: int
    draws: int
    contender: str
    reference: str  # the contender whose answer counts
    target: str
    met: bool | None
    note: str
    machine: str
    failure: str = ""
    runs: int = 0
    median: float | None = None
    fastest: float | None = None
    slowest: float | None = None
    speedup: float | None = None  # the first contender's median divided by this one's
    host_mib: float | None = None
    gpu_mib: float | None = None
    distance: float | None = None  # of the answer from the reference's
    tolerance: float | None = None
    agrees: bool | None = None

    @property
    def is_reference(self) -> bool:
        """Whether the others are compared with this one."""
        return self.contender == self.reference


def row(
    case: Case,
    contender: str,
    outcome: Outcome,
    medians: dict[str, float],
    machine: str,
) -> Row:
    """Make the row of `contender`; `medians` holds those measured so far, its own included."""
    target = case.target if contender == OURS else None
    if contender == OURS_GPU and case.gpu_target is not None:
        target = Target(case.gpu_target, None)
    return Row(
        case=case.key,
        title=case.title,
        size=str(case.size),
        n=case.size.n,
        classes=case.size.classes,
        utilities=case.size.utilities,
        draws=case.size.draws,
        contender=contender,
        reference=case.reference,
        target=str(target or ""),
        met=_is_met(target, medians, contender),
        note=case.note,
        machine=machine,
        **_numbers(outcome, medians.get(case.contenders[0].name)),
    )


def _numbers(outcome: Outcome, first: float | None) -> dict[str, Any]:
    if isinstance(outcome, str):
        return {"failure": outcome}
    measured, agreement = outcome
    return {
        "median": measured.median,
        "fastest": min(measured.seconds),
        "slowest": max(measured.seconds),
        "runs": len(measured.seconds),
        "speedup": first / measured.median if first else None,
        "host_mib": None if measured.host_bytes is None else measured.host_bytes / MIB,
        "gpu_mib": None if measured.gpu_bytes is None else measured.gpu_bytes / MIB,
        "distance": agreement and agreement.distance,
        "tolerance": agreement and agreement.tolerance,
        "agrees": agreement and agreement.holds,
    }


def _is_met(target: Target | None, medians: dict[str, float], contender: str) -> bool | None:
    if target is None or contender not in medians:
        return None
    if target.against is None:
        return medians[contender] < target.factor
    against = medians.get(target.against)
    return None if against is None else medians[contender] <= target.factor * against


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """All numbers, unrounded."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(each) for each in rows)
    write_text(path, text.getvalue())


def read_csv(path: Path) -> list[Row]:
    """The rows of an earlier run; none if there is no such file or it has other columns."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != [f.name for f in fields(Row)]:
            return []
        return [_parsed(record) for record in reader]


def _parsed(record: dict[str, str]) -> Row:
    values: dict[str, object] = {}
    for each in fields(Row):
        text, kind = record[each.name], str(each.type)
        if not text and "None" in kind:
            values[each.name] = None
        elif kind.startswith("bool"):
            values[each.name] = text == "True"
        else:
            values[each.name] = {"str": str, "int": int}.get(kind, float)(text)
    return Row(**values)  # type: ignore[arg-type]


HEADINGS = ("Work", "Size", "Contender", "Median", "Speed-up", "Memory", "GPU memory", "Difference")
LEGEND = f"""\
Median of at least {RUNS} runs in wall-clock time; fewer are said, and another package that takes
more than {SLOW_SECONDS:.0f} s runs once. Speed-up: time of the first contender of the block divided
by this one's. Memory: peak beyond inputs and libraries, each contender in a process of its own.
Difference: largest absolute difference of any number of the answer from the reference's, or by how
much the likelihood is worse; beyond the tolerance it says DISAGREES, and "not checked" if the
reference gave no answer. "plain" is the definition in NumPy and SciPy. The GPU's targets are for an
H200."""


def cells(each: Row) -> tuple[str, ...]:
    """A row as the text of its cells, in the order of HEADINGS."""
    if each.failure:
        return (each.title, each.size, each.contender, each.failure, "", "", "", "")
    runs = f" ({each.runs} run{'s' if each.runs > 1 else ''})" if each.runs < RUNS else ""
    speedup = "" if each.speedup is None else f"{each.speedup:.3g}×"
    if each.target:
        word = {True: "met", False: "MISSED", None: "open"}[each.met]
        speedup = f"{speedup} (target: {each.target}, {word})".strip()
    return (
        each.title,
        each.size,
        each.contender,
        f"{seconds(each.median)}{runs}",
        speedup,
        mebibytes(each.host_mib),
        mebibytes(each.gpu_mib),
        _difference(each),
    )


def _difference(each: Row) -> str:
    if each.is_reference:
        return "reference"
    if each.distance is None:
        return "not checked"
    return f"{each.distance:.1e}{'' if each.agrees else ' DISAGREES'}"


def seconds(value: float | None) -> str:
    """A time in a unit that leaves three digits."""
    if value is None:
        return ""
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor or unit == "µs":
            return f"{value / factor:.3g} {unit}"
    return ""


def mebibytes(value: float | None) -> str:
    """Memory; below 1 MiB it is noise."""
    if value is None:
        return ""
    return "< 1 MiB" if value < 1 else f"{value:,.0f} MiB"


def markdown(rows: Sequence[Row]) -> str:
    """The table with a heading per machine; notes below."""
    parts = ["# Speed", LEGEND]
    for machine in dict.fromkeys(each.machine for each in rows):
        own = [each for each in rows if each.machine == machine]
        lines = (_without_repetition(own, k) for k in range(len(own)))
        table = markdown_table(HEADINGS, lines, text=3)
        notes = {f"{each.title}: {each.note}." for each in own if each.note}
        listed = "\n".join(f"- {note}" for note in sorted(notes))
        processor, _, versions = machine.partition("; ")
        parts.append(f"## {processor}\n\n{versions}\n\n{table}\n\n{listed}")
    return "\n\n".join(parts) + "\n"


def _without_repetition(rows: Sequence[Row], k: int) -> tuple[str, ...]:
    """Cells of row k; title and size only at the start of a block."""
    shown = cells(rows[k])
    if k and (rows[k - 1].title, rows[k - 1].size) == (rows[k].title, rows[k].size):
        return ("", "", *shown[2:])
    return shown


def print_table(rows: Sequence[Row], console: Console) -> None:
    """The table on the terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if k < 3 else "right", no_wrap=k < 3)
    for k, each in enumerate(rows):
        bad = each.failure or each.agrees is False or each.met is False
        table.add_row(*_without_repetition(rows, k), style="red" if bad else None)
    wide = Console(file=console.file, width=200) if not console.is_terminal else console
    wide.print(table, highlight=False)
