"""Sum the time that a suite took: by stage, calibrator and benchmark.

python -m utility_calibration.scripts.maintain.suite_times
python -m utility_calibration.scripts.maintain.suite_times other/data/log --name synthetic_imagenet

Without a folder it takes the units that ran here (data/log/*.jsonl).

Every unit that runs writes a line with its core seconds and the memory of its process. If a unit
ran more than once, its last line counts. The sums go to --output: suite_times[_NAME].csv (stage ×
benchmark × calibrator) and .md. A suite takes about the sum divided by the number of cores.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.harness.command import Parser
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.wording import markdown_table

LOG_KEY = ["stage", "benchmark", "calibrator"]
"""The parts of a unit's name in the log. For dynamics, `calibrator` is the family of utilities."""


def read_times(folder: Path) -> pd.DataFrame:
    """Of every unit that ended well its last line in the log: LOG_KEY, split, seconds, memory_mib.

    Seconds are those of a core. The table is empty where no unit ran.
    """
    lines = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # a full disk may have cut a line
                lines.append(json.loads(line))
    times = pd.DataFrame(lines)
    if times.empty:
        return times
    times = times[times["error"] == ""].drop_duplicates("unit", keep="last")
    places = times["unit"].str.split("/", expand=True).reindex(columns=range(4)).fillna("")
    places.columns = pd.Index([*LOG_KEY, "split"])
    numbers = times[["core_seconds", "memory_mib"]].rename(columns={"core_seconds": "seconds"})
    return pd.concat([places, numbers], axis=1)


def sums(times: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Units, seconds and their share per group, the longest first."""
    groups = times.groupby(list(by)).agg(units=("seconds", "size"), seconds=("seconds", "sum"))
    groups["share"] = groups.seconds / groups.seconds.sum()
    return groups.sort_values("seconds", ascending=False)


def markdown(times: pd.DataFrame) -> str:
    """The sums by stage, by stage and calibrator, and by benchmark."""
    blocks = [
        "# Where the suite's time goes",
        f"Core seconds of {len(times):,} units, {times.seconds.sum():,.0f} in all. "
        f"Largest resident memory of a process: {times.memory_mib.max():,.0f} MiB.",
    ]
    for by in (["stage"], ["stage", "calibrator"], ["benchmark"]):
        table = sums(times, by).reset_index().astype({"units": str})
        table["seconds"] = table.seconds.map("{:,.1f}".format)
        table["share"] = table.share.map("{:.1%}".format)
        lines = table.to_numpy().tolist()
        headings = [str(name).capitalize() for name in table]
        blocks += [f"## By {' and '.join(by)}", markdown_table(headings, lines, text=len(by))]
    return "\n\n".join(blocks) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, write, print; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("log", type=Path, nargs="?", default=Path("data/log"))
    parser.add_argument("--output", type=Path, default=Path("results/speed"))
    parser.add_argument("--name", default="", help="of the files: suite_times_NAME.csv and .md")
    options = parser.parse_args(arguments)
    times = read_times(options.log)
    if times.empty:
        parser.error(f"{options.log}: no line of a unit that ran")
    path = options.output / ("_".join(["suite_times", *filter(None, [options.name])]) + ".csv")
    write_text(path, sums(times, LOG_KEY).round(4).to_csv())
    write_text(path.with_suffix(".md"), markdown(times))
    say(f"{markdown(times)}\nWritten to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
