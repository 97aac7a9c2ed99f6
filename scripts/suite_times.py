"""Where a suite's wall time goes: by stage, calibrator and benchmark; before and after a change.

python scripts/suite_times.py results --suite cifar
python scripts/suite_times.py results --suite cifar --before /folder/of/an/older/results

Reads the seconds and the memory that every unit noted: run-fit.json and run-metrics.json in
runs/<benchmark>/<calibrator>/split-*, and dynamics/<benchmark>-<family>/run.json. Writes
suite_times.csv (stage × benchmark × calibrator) and suite_times.md (sums of it) into --output; with
--name ABC suite_times_ABC.csv and .md. Without --suite, everything in the folder counts;
evaluations under another name (run-metrics-<name>.json) do not. Seconds are those of cores where a
unit noted them, so that waiting for other work does not count, else of the clock; the wall time of
the suite is about the sum divided by the number of cores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a plain checkout, not installed

import pandas as pd

from pipeline.harness.artifacts import CorruptFile, read_json, write_text
from pipeline.harness.command import Parser
from pipeline.harness.progress import say
from pipeline.harness.units import suite_lists, suite_names
from pipeline.reporting.markdown import markdown_table

RECORDS = {
    "fit": "runs/*/*/split-*/run-fit.json",
    "evaluate": "runs/*/*/split-*/run-metrics.json",
    "dynamics": "dynamics/*/run.json",
}
KEY = ["stage", "benchmark", "calibrator"]
"""What seconds are summed over the splits of; in the stage dynamics the family of utilities."""
HEADINGS = {"stage": "Stage", "benchmark": "Benchmark", "calibrator": "Calibrator or family"}


def read_times(results: Path) -> pd.DataFrame:
    """The seconds of every unit in a results folder: a row each, with its `KEY`.

    `megabytes`: the process's largest resident memory up to its end; NaN where none was noted.

    Raises:
        CorruptFile: a record that is not whole, or without seconds.
    """
    rows = []
    for stage, pattern in RECORDS.items():
        for path in sorted(results.glob(pattern)):
            record = read_json(path)
            notes = record if isinstance(record, dict) else {}
            seconds = notes.get("core_seconds", notes.get("seconds"))
            if not isinstance(seconds, int | float):
                raise CorruptFile(f"{path}: notes no seconds")
            folder = path.parent.name.rpartition("-")
            names = (folder[0], folder[2]) if stage == "dynamics" else path.parts[-4:-2]
            megabytes = float(notes.get("peak_megabytes", "nan"))
            rows.append((stage, *names, float(seconds), megabytes))
    return pd.DataFrame(rows, columns=[*KEY, "seconds", "megabytes"])


def of_suite(times: pd.DataFrame, suite: str) -> pd.DataFrame:
    """What `conf/suite/<suite>.yaml` lists."""
    lists = suite_lists(suite)
    dynamics = (times.stage == "dynamics") & times.benchmark.isin(lists.get("dynamics", ()))
    listed = times.benchmark.isin(lists["benchmarks"]) & times.calibrator.isin(lists["calibrators"])
    return times[dynamics | (times.stage != "dynamics") & listed]


def combinations(now: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Sums over splits per `KEY` of `now`, in the order of the stages, the longest first.

    Where `before` has another number of splits, its mean per split counts, times those of now.
    `compared`: the seconds of now that have a counterpart before.
    """
    earlier = before.groupby(KEY).seconds.agg(before_splits="size", mean="mean")
    found = now.groupby(KEY).seconds.agg(splits="size", seconds="sum").join(earlier).reset_index()
    found["before_splits"] = found.before_splits.fillna(0).astype(int)
    found["before_seconds"] = found.pop("mean") * found.splits
    found["compared"] = found.seconds.where(found.before_seconds.notna())
    found["share"] = found.seconds / found.seconds.sum()
    found["ratio"] = found.before_seconds / found.compared
    return in_order(found)


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """By stage, where there is one, then the longest first."""
    by = [name for name in ("stage", "seconds") if name in rows]
    place = list(RECORDS).index
    return rows.sort_values(by, key=lambda c: c.map(place) if c.name == "stage" else -c)


def size_of(now: pd.DataFrame) -> str:
    """How many splits were run, and the memory that it took where that was noted."""
    counts = now[now.stage != "dynamics"].groupby(KEY).size()
    splits = sorted(set(counts)) or [0]
    several = f"{splits[0]}" if len(splits) == 1 else f"{splits[0]} to {splits[-1]}"
    said = f"Splits run of each benchmark and calibrator: {several}."
    if now.megabytes.notna().any():
        said += f" Largest resident memory of a process: {now.megabytes.max():,.0f} MiB."
    return said


def markdown(parts: pd.DataFrame, size: str, only_before: Sequence[str], compares: bool) -> str:
    """Sums by stage, by stage and calibrator, and by benchmark, with what to know about them."""
    blocks = [
        "# Where the suite's time goes",
        "Core seconds of the units (one calibrator on one split: fitted, tuning included, or "
        "evaluated), summed; the wall time is about the sum divided by the number of cores.",
        size,
    ]
    for by in (["stage"], ["stage", "calibrator"], ["benchmark"]):
        blocks.append(f"## By {' and '.join(HEADINGS[name].lower() for name in by)}")
        blocks.append(table(parts, by, compares))
    if compares:
        blocks.append("\n".join(f"- {note}" for note in notes(parts, only_before)))
    return "\n\n".join(blocks) + "\n"


def table(parts: pd.DataFrame, by: list[str], compares: bool) -> str:
    """The sums of the groups and the total, as a Markdown table."""
    numbers = ["splits", "seconds", "share", "before_seconds", "compared"]
    sums = in_order(parts.groupby(by, as_index=False)[numbers].sum(min_count=1))
    total = parts[numbers].sum(min_count=1).to_frame().T.assign(**dict.fromkeys(by, ""))
    total[by[0]] = "Total"
    headings = ["Units", "Seconds", "Share", *(["Before", "Before / now"] if compares else [])]
    lines = [
        [*(row[name] for name in by), *cells(row)[: len(headings)]]
        for _, row in pd.concat([sums, total]).iterrows()
    ]
    return markdown_table([*(HEADINGS[name] for name in by), *headings], lines, text=len(by))


def cells(row: pd.Series) -> list[str]:
    """Units, seconds and share; before and the ratio, with a * if it is over some parts only."""
    known = [f"{int(row.splits):,}", f"{row.seconds:,.1f}", f"{row['share']:.1%}"]
    if pd.isna(row.before_seconds):
        return [*known, "", ""]
    mark = "" if row.compared == row.seconds else " *"
    ratio = row.before_seconds / row.compared
    return [*known, f"{row.before_seconds:,.1f}{mark}", f"{ratio:.3g}×{mark}"]


def notes(parts: pd.DataFrame, only_before: Sequence[str]) -> Iterator[str]:
    """What was scaled, and what is only on one side."""
    scaled = (parts.before_splits > 0) & (parts.before_splits != parts.splits)
    if scaled.any():
        found = ", ".join(names(parts[scaled]))
        yield f"Before had other splits, so its mean per split counts: {found}."
    absent = names(parts[parts.before_splits == 0])
    if absent:
        yield f"Not measured before, so out of the comparison (*): {', '.join(absent)}."
    if only_before:
        yield f"Measured before only, counted nowhere: {', '.join(only_before)}."


def names(rows: pd.DataFrame) -> list[str]:
    """`stage benchmark/calibrator` of each combination, sorted."""
    return sorted({f"{r.stage} {r.benchmark}/{r.calibrator}" for r in rows[KEY].itertuples()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, write, print; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("results", type=Path, help="results folder of the suite")
    parser.add_argument("--before", type=Path, help="results folder from before the change")
    parser.add_argument(
        "--suite",
        choices=suite_names(),
        help="only what conf/suite/<suite>.yaml lists (default: everything in the folder)",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("results/speed"), help="default: results/speed"
    )
    parser.add_argument("--name", default="", help="of the files: suite_times_NAME.csv and .md")
    options = parser.parse_args(arguments)

    def times(folder: Path) -> pd.DataFrame:
        try:
            found = read_times(folder)
        except CorruptFile as error:
            parser.error(str(error))
        if options.suite:
            found = of_suite(found, options.suite)
        if found.empty:
            parser.error(
                f"{folder}: no run-fit.json, run-metrics.json or run.json of the suite in it"
            )
        return found

    now = times(options.results)
    before = times(options.before) if options.before else now.iloc[:0]
    parts = combinations(now, before)
    only_before = sorted({*names(before)} - {*names(now)})
    text = markdown(parts, size_of(now), only_before, compares=options.before is not None)
    columns = [*KEY, "splits", "seconds", "share", "before_splits", "before_seconds", "ratio"]
    stem = "_".join(["suite_times", *filter(None, [options.name])])
    write_text(options.output / f"{stem}.csv", parts[columns].to_csv(index=False))
    write_text(options.output / f"{stem}.md", text)
    say(text)
    say(f"Written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
