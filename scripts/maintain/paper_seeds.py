"""Count the printed cells that agree with suite=paper_closest, for several seeds of the splits.

Run the suite for every seed into a folder of its own, then count:

    for seed in 1 2 3; do utility-calibration sweep suite=paper_closest splits.seed=$seed \\
        paths.data=out/seed$seed/data paths.results=out/seed$seed/results; done
    python -m utility_calibration.scripts.maintain.paper_seeds results out/seed*/results

The first folder has the repository's own seed. The script reads each folder's tables/comparison.csv
and writes paper_seeds.csv (the number of cells within 3 standard errors, by printed table and
method) and paper_seeds.md (its sums) to --output, by default results/tables.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from utility_calibration.pipeline.harness.artifacts import write_text
from utility_calibration.pipeline.harness.command import Parser
from utility_calibration.pipeline.harness.progress import say
from utility_calibration.pipeline.reporting.comparison import LIMIT
from utility_calibration.pipeline.reporting.wording import markdown_table


def counts_of(folder: Path) -> pd.Series:
    """Cells of suite=paper_closest within LIMIT, per printed table and variant of a method."""
    cells = pd.read_csv(folder / "tables" / "comparison.csv")
    cells = cells[cells.preset].drop_duplicates(["table", "method", "metric"])
    return (cells.z.abs() <= LIMIT).groupby([cells.table, cells.variant]).sum()


def summary(counts: pd.DataFrame, level: str) -> str:
    """One line per folder, then mean and range of all folders but the first."""
    sums = counts.T.groupby(level=level, sort=False).sum().T
    sums["all"] = sums.sum(axis=1)
    lines = [[str(name), *(f"{v:.0f}" for v in row)] for name, row in sums.iterrows()]
    if len(others := sums.iloc[1:]):
        lines.append(["Mean of the others", *(f"{v:.1f}" for v in others.mean())])
        ends = zip(others.min(), others.max(), strict=True)
        lines.append(["Range", *(f"{low:.0f} … {high:.0f}" for low, high in ends)])
    return markdown_table(["Results", *map(str, sums.columns)], lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, write, print; return the exit code."""
    parser = Parser(__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="folders of results, a seed each")
    parser.add_argument("--output", type=Path, default=Path("results/tables"))
    options = parser.parse_args(arguments)
    for path in (folder / "tables/comparison.csv" for folder in options.results):
        if not path.is_file():
            parser.error(f"{path} does not exist: report suite=paper_closest there")
    counts = pd.DataFrame({str(folder): counts_of(folder) for folder in options.results}).T
    path = options.output / "paper_seeds.csv"
    write_text(path, counts.T.reset_index().to_csv(index=False))
    parts = [
        "# Cells within 3 s.e. of the printed ones (suite=paper_closest) by seed of the splits"
    ]
    parts += [summary(counts, "table"), summary(counts, "variant")]
    write_text(path.with_suffix(".md"), "\n\n".join(parts) + "\n")
    say(f"wrote {path} and .md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
