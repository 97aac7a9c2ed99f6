"""A run against the committed numbers: which units came out the same, and where others differ.

python -m pipeline.verify                                   # everything that is committed
python -m pipeline.verify --suite cifar                     # what `make repro SUITE=cifar` makes
python -m pipeline.verify --suite cifar_closest --evaluation paper_batches
python -m pipeline.verify --benchmark cifar100_resnet
python -m pipeline.verify --against v0.2.0                  # another revision

Per unit, by its committed metrics: `equal` to the last bit, `equal as printed` (all digits of the
tables), `different`, `not run` here (only committed), or `new`. Exit code 1 where units differ.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.table import Table

from metrics.registry import METRICS
from metrics.registry import metric as registered
from pipeline.harness.artifacts import read_record
from pipeline.harness.command import CONF, Parser, UnitsFailed, UsageError, user_errors_in_one_line
from pipeline.harness.paths import DEFAULT_EVALUATION, runs_folder
from pipeline.harness.progress import console, say
from pipeline.harness.units import suite_lists, suite_names
from pipeline.reporting.candidates import known_evaluations

Status = Literal["equal", "equal as printed", "different", "not run", "new"]
STATUSES: tuple[Status, ...] = ("equal", "equal as printed", "different", "not run", "new")
DIGITS = 2
"""Of a table's cell behind the point, at most."""
SHOWN = 10


@dataclass(frozen=True)
class Verdict:
    """What became of one unit's metrics; `where` names those that differ, worst first."""

    unit: str
    status: Status
    where: str = ""

    @property
    def evaluation(self) -> str:
        """Which of conf/evaluation: metrics.json, or metrics-<evaluation>.json."""
        _, _, name = self.unit.rpartition("/split-")[2].partition("-")
        return name or DEFAULT_EVALUATION


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare and print a table.

    Raises:
        UnitsFailed: units that differ in printed digits.
        UsageError: no git repository, or no such revision.
    """
    options = parse(arguments)
    verdicts = list(verify(options.results, options.against, options.benchmark))
    if options.suite:
        verdicts = of_suite(verdicts, options.suite)
    if evaluation := options.evaluation or (options.suite and DEFAULT_EVALUATION):
        verdicts = [one for one in verdicts if one.evaluation == evaluation]
    print_verdicts(verdicts)
    different = [one for one in verdicts if one.status == "different"]
    if different:
        raise UnitsFailed(f"verify: {len(different)} of {len(verdicts)} units are different")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = Parser(__doc__)
    parser.add_argument("--against", default="HEAD", metavar="REVISION", help="default: HEAD")
    parser.add_argument("--benchmark", help="default: all")
    parser.add_argument("--suite", choices=suite_names(), help="only its units (default: all)")
    evaluations = known_evaluations(CONF)
    told = f"default: all; with --suite: {DEFAULT_EVALUATION}"
    parser.add_argument("--evaluation", choices=evaluations, help=told)
    parser.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    return parser.parse_args(arguments)


def verify(results: Path, revision: str, benchmark: str | None = None) -> Iterator[Verdict]:
    """Compare every unit's metrics in `results` with those committed in `revision`."""
    folder = runs_folder(results)
    inside = folder / benchmark if benchmark else folder
    before = committed(inside, revision)
    here = {path.relative_to(folder).as_posix() for path in inside.rglob("metrics*.json")}
    tracked = {Path(name).relative_to(folder).as_posix(): name for name in before}
    for name in sorted({*tracked, *here}, key=_natural):
        unit = name.removesuffix(".json").replace("/metrics", "")
        if name not in tracked:
            yield Verdict(unit, "new")
            continue
        record = read_record(folder / name)
        if record is None:
            yield Verdict(unit, "not run")
        else:
            yield compared(unit, before[tracked[name]], record["metrics"])


def of_suite(verdicts: Sequence[Verdict], suite: str) -> list[Verdict]:
    """What `conf/suite/<suite>.yaml` lists."""
    lists = suite_lists(suite)
    listed = {f"{b}/{c}" for b in lists["benchmarks"] for c in lists["calibrators"]}
    return [one for one in verdicts if one.unit.rpartition("/")[0] in listed]


def committed(folder: Path, revision: str) -> dict[str, dict[str, float]]:
    """The metrics of every unit below `folder` in a revision, by path.

    In two calls of git: a process per file would take minutes.
    """
    listing = _git("ls-tree", "-r", revision, "--", folder.as_posix())
    entries = [line.split(maxsplit=3) for line in listing.splitlines()]
    wanted = {e[3]: e[2] for e in entries if Path(e[3]).name.startswith("metrics")}
    contents = _git("cat-file", "--batch", given="\n".join(wanted.values()) + "\n")
    found, at = {}, 0
    for path in wanted:
        size = int(contents[at:].split("\n", 1)[0].split()[2])
        start = contents.index("\n", at) + 1
        found[path] = json.loads(contents[start : start + size])["metrics"]
        at = start + size + 1
    return found


def _git(*arguments: str, given: str | None = None) -> str:
    """What git prints, in Latin 1: a character a byte, as `cat-file` counts."""
    try:
        done = subprocess.run(
            ["git", *arguments], input=given, capture_output=True, encoding="latin-1", check=True
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed; it keeps the committed numbers") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1] if error.stderr.strip() else "no reason"
        raise UsageError(f"git {arguments[0]}: {reason}") from error
    return done.stdout


def compared(unit: str, before: dict[str, float], now: dict[str, float]) -> Verdict:
    """What became of one unit."""
    if before == now:
        return Verdict(unit, "equal")
    apart = {key: _digits_apart(key, before.get(key), now.get(key)) for key in {*before, *now}}
    visible = sorted((key for key in apart if apart[key] > 0), key=lambda key: -apart[key])
    if not visible:
        return Verdict(unit, "equal as printed")
    told = [f"{key} {_shown(before.get(key))} → {_shown(now.get(key))}" for key in visible[:3]]
    more = f" and {len(visible) - 3} more" if len(visible) > 3 else ""
    return Verdict(unit, "different", ", ".join(told) + more)


def _digits_apart(key: str, before: float | None, now: float | None) -> float:
    """By how many units of the last printed digit two values differ; infinity if one is absent."""
    if before is None or now is None:
        return math.inf
    if before == now or (math.isnan(before) and math.isnan(now)):
        return 0.0
    power = registered(key).power if key in METRICS else 3
    scale = 10.0 ** (power + DIGITS)
    return abs(round(before * scale) - round(now * scale))


def _shown(value: float | None) -> str:
    return "absent" if value is None else f"{value:.6g}"


def _natural(name: str) -> tuple[str, int, str]:
    """Splits in the order of their numbers."""
    folder, _, rest = name.partition("/split-")
    number, _, file = rest.partition("/")
    return folder, int(number) if number.isdecimal() else -1, file


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """A row per benchmark and calibrator, then the first units that differ."""
    table = Table(title="Units against the committed numbers")
    table.add_column(no_wrap=True)
    for status in STATUSES:  # a heading may be broken between words, not within one
        table.add_column(status, justify="right", min_width=max(map(len, status.split())))
    counts: dict[str, Counter[str]] = {}
    for one in verdicts:
        counts.setdefault(one.unit.rpartition("/")[0], Counter())[one.status] += 1
    for name, count in counts.items():
        table.add_row(name, *(str(count[status]) if count[status] else "" for status in STATUSES))
    total = Counter(one.status for one in verdicts)
    table.add_section()
    table.add_row("all", *(str(total[status]) for status in STATUSES))
    console.print(table)
    different = [one for one in verdicts if one.status == "different"]
    for one in different[:SHOWN]:
        say(f"different: {one.unit}: {one.where}")
    if len(different) > SHOWN:
        say(f"and {len(different) - SHOWN} more units")


if __name__ == "__main__":
    with user_errors_in_one_line():
        main()
