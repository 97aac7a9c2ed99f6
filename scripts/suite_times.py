"""Where a suite's wall time goes: by stage, calibrator and benchmark; before and after a change.

python scripts/suite_times.py results --suite cifar
python scripts/suite_times.py results --suite cifar --before /folder/of/an/older/results

Reads the seconds that every unit noted: runs/<benchmark>/<calibrator>/split-*/run-fit.json and
run-metrics.json, and dynamics/<benchmark>-<family>/run.json. Writes suite_times.csv (stage ×
benchmark × calibrator) and suite_times.md (sums of it) into --output. Without --suite, everything
in the folder counts; evaluations under another name (run-metrics-<name>.json) do not. Seconds are
those of the process that did a unit, summed; units run side by side, so the wall time of the suite
is about the sum divided by the number of processes.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a plain checkout, not installed

from pipeline.harness.artifacts import CorruptFile, read_json, write_text
from pipeline.harness.progress import say
from pipeline.harness.units import composed

FIT, EVALUATE, DYNAMICS = "fit", "evaluate", "dynamics"
STAGES = {FIT: "run-fit.json", EVALUATE: "run-metrics.json", DYNAMICS: "run.json"}
ORDER = {stage: place for place, stage in enumerate(STAGES)}
SUITES = Path(__file__).resolve().parents[1] / "conf" / "suite"
NAMED = 8
"""More scaled combinations than this are counted, not listed."""


class Key(NamedTuple):
    """What seconds are summed over the splits of; in the stage dynamics the family of utilities."""

    stage: str
    benchmark: str
    calibrator: str

    @property
    def name(self) -> str:
        """What the splits belong to."""
        return f"{self.benchmark}/{self.calibrator}"


Times = Mapping[Key, Sequence[float]]
"""Seconds of every split."""


@dataclass(frozen=True)
class Part:
    """One key: seconds of all its splits now, and before, scaled to as many splits."""

    key: Key
    splits: int
    seconds: float
    before_splits: int = 0
    before: float | None = None


@dataclass(frozen=True)
class Sum:
    """Several parts. `compared`: the seconds now of those parts that were measured before too."""

    splits: int
    seconds: float
    before: float | None
    compared: float

    @property
    def ratio(self) -> float | None:
        """Before divided by now, over the parts that both have."""
        return None if self.before is None or not self.compared else self.before / self.compared

    @property
    def is_partly_compared(self) -> bool:
        """Whether some of the parts, but not all, were measured before."""
        return self.before is not None and self.compared != self.seconds


def seconds_of(path: Path) -> float:
    """The seconds that a unit's record notes.

    Raises:
        CorruptFile: not a whole record, or without seconds.
    """
    record = read_json(path)
    found = record.get("seconds") if isinstance(record, dict) else None
    if not isinstance(found, int | float):
        raise CorruptFile(f"{path}: notes no seconds")
    return float(found)


def read_times(results: Path) -> dict[Key, list[float]]:
    """Seconds of every split of everything in a results folder."""
    times: dict[Key, list[float]] = {}
    for stage in (FIT, EVALUATE):
        for path in sorted(results.glob(f"runs/*/*/split-*/{STAGES[stage]}")):
            benchmark, calibrator = path.parts[-4:-2]
            times.setdefault(Key(stage, benchmark, calibrator), []).append(seconds_of(path))
    for path in sorted(results.glob(f"dynamics/*/{STAGES[DYNAMICS]}")):
        benchmark, _, family = path.parent.name.rpartition("-")
        times.setdefault(Key(DYNAMICS, benchmark, family), []).append(seconds_of(path))
    return times


def of_suite(times: Times, suite: str) -> dict[Key, Sequence[float]]:
    """What `conf/suite/<suite>.yaml` lists."""
    lists = composed([f"suite={suite}"]).suite

    def belongs(key: Key) -> bool:
        if key.stage == DYNAMICS:
            return key.benchmark in lists.get("dynamics", ())
        return key.benchmark in lists["benchmarks"] and key.calibrator in lists["calibrators"]

    return {key: seconds for key, seconds in times.items() if belongs(key)}


def parts(now: Times, before: Times) -> list[Part]:
    """Every key of `now` in the order of the stages, the longest first.

    Where `before` has another number of splits, its mean per split counts, times those of now.
    """
    found = []
    for key, seconds in now.items():
        earlier = before.get(key, ())
        scaled = sum(earlier) / len(earlier) * len(seconds) if earlier else None
        found.append(Part(key, len(seconds), sum(seconds), len(earlier), scaled))
    return sorted(found, key=lambda part: (ORDER[part.key.stage], -part.seconds))


def summed(some: Iterable[Part]) -> Sum:
    """Add up parts; those that were not measured before stay out of the comparison."""
    some = list(some)
    both = [(part.before, part.seconds) for part in some if part.before is not None]
    return Sum(
        splits=sum(part.splits for part in some),
        seconds=sum(part.seconds for part in some),
        before=sum(before for before, _ in both) if both else None,
        compared=sum(seconds for _, seconds in both),
    )


def csv_text(all_parts: Sequence[Part]) -> str:
    """All numbers, unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        (*Key._fields, "splits", "seconds", "share", "before_splits", "before_seconds", "ratio")
    )
    total = summed(all_parts).seconds
    for part in all_parts:
        ratio = summed([part]).ratio
        share = part.seconds / total if total else 0.0
        numbers = (part.splits, part.seconds, share, part.before_splits, part.before, ratio)
        writer.writerow((*part.key, *numbers))
    return text.getvalue()


def markdown(all_parts: Sequence[Part], only_before: Sequence[Key], compares: bool) -> str:
    """Sums by stage, by stage and calibrator, and by benchmark, with what to know about them."""
    blocks = [
        "# Where the suite's time goes",
        "Seconds of the process that did a unit (one calibrator on one split: fitted, tuning "
        "included, or evaluated), summed; units run side by side, so the wall time is about the "
        "sum divided by the number of processes.",
        *_table(all_parts, ("Stage",), lambda key: (key.stage,), compares),
        *_table(
            all_parts,
            ("Stage", "Calibrator or family"),
            lambda key: (key.stage, key.calibrator),
            compares,
        ),
        *_table(all_parts, ("Benchmark",), lambda key: (key.benchmark,), compares),
    ]
    notes = list(_notes(all_parts, only_before)) if compares else []
    if notes:
        blocks.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(blocks) + "\n"


def _table(
    all_parts: Sequence[Part],
    headings: tuple[str, ...],
    group: Callable[[Key], tuple[str, ...]],
    compares: bool,
) -> Iterator[str]:
    """A heading and the sums of the groups; groups of the same first heading stay together."""
    groups: dict[tuple[str, ...], list[Part]] = {}
    for part in all_parts:
        groups.setdefault(group(part.key), []).append(part)
    total = summed(all_parts)
    sums = {names: summed(some) for names, some in groups.items()}
    names_in_order = sorted(sums, key=lambda names: (ORDER.get(names[0], 0), -sums[names].seconds))
    numbers = ("Units", "Seconds", "Share", *(("Before", "Before / now") if compares else ()))
    lines = [
        (*headings, *numbers),
        (*("---" for _ in headings), *("--:" for _ in numbers)),
        *((*names, *_cells(sums[names], total, compares)) for names in names_in_order),
        ("Total", *("" for _ in headings[1:]), *_cells(total, total, compares)),
    ]
    yield "## By " + " and ".join(heading.lower() for heading in headings)
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(one: Sum, total: Sum, compares: bool) -> tuple[str, ...]:
    share = one.seconds / total.seconds if total.seconds else 0.0
    cells = (f"{one.splits:,}", f"{one.seconds:,.1f}", f"{share:.1%}")
    if not compares:
        return cells
    mark = " *" if one.is_partly_compared else ""
    before = "" if one.before is None else f"{one.before:,.1f}{mark}"
    return (*cells, before, "" if one.ratio is None else f"{one.ratio:.3g}×{mark}")


def _notes(all_parts: Sequence[Part], only_before: Sequence[Key]) -> Iterator[str]:
    """What was scaled, and what is only on one side."""
    scaled: dict[tuple[int, int], list[str]] = {}
    for part in all_parts:
        if part.before_splits not in (0, part.splits):
            names = scaled.setdefault((part.before_splits, part.splits), [])
            names.append(f"{part.key.stage} {part.key.name}")
    for (earlier, now), names in scaled.items():
        which = f"{len(names)} combinations" if len(names) > NAMED else ", ".join(sorted(names))
        yield (
            f"Before has {earlier} instead of {now} splits, so its mean per split is multiplied by "
            f"{now}: {which} of stage, benchmark and calibrator."
        )
    absent = [f"{part.key.stage} {part.key.name}" for part in all_parts if part.before is None]
    if absent:
        yield (
            "Not measured before, so left out of the comparison (where it is a part of a row, the "
            f"row has a *, and its ratio is over the rest): {', '.join(sorted(absent))}."
        )
    if only_before:
        names = sorted(f"{key.stage} {key.name}" for key in only_before)
        yield f"Measured before only, counted nowhere: {', '.join(names)}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, write, print; return the exit code."""
    summary, _, details = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="results folder of the suite")
    parser.add_argument("--before", type=Path, help="results folder from before the change")
    parser.add_argument(
        "--suite",
        choices=sorted(path.stem for path in SUITES.glob("*.yaml")),
        help="only what conf/suite/<suite>.yaml lists (default: everything in the folder)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("results/speed"), help="default: results/speed"
    )
    options = parser.parse_args(arguments)

    def times(folder: Path) -> Times:
        try:
            found: Times = read_times(folder)
        except CorruptFile as error:
            parser.error(str(error))
        if options.suite:
            found = of_suite(found, options.suite)
        if not found:
            parser.error(
                f"{folder}: no run-fit.json, run-metrics.json or run.json of the suite in it"
            )
        return found

    now = times(options.results)
    before = times(options.before) if options.before else {}
    all_parts = parts(now, before)
    only_before = [key for key in before if key not in now]
    text = markdown(all_parts, only_before, compares=options.before is not None)
    write_text(options.output / "suite_times.csv", csv_text(all_parts))
    write_text(options.output / "suite_times.md", text)
    say(text)
    say(f"Written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
