"""How far our numbers agree with the printed ones: by several limits, and for other seeds.

The seed draws the random splits. Two of our own seeds share everything else, so what they agree in
says how many cells would agree if the paper had our protocol. The seeds are those of the table
`paper_seeds.csv` (scripts/maintain/paper_seeds.py), which a report only reads.
"""

from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .wording import markdown_table

LIMIT = 3.0
CLOSEST = "paper_closest"
SEEDS_FILE = "paper_seeds.csv"
CELL = ["table", "method", "metric"]
ROUNDED = 1e-4
"""Two results of one unit differ by less, relatively: files have seven digits."""
HEADING = ("Settings", "Cells", "≤ 3 s.e.", "≤ 2 s.e.", "Within the printed ±",
           "Median deviation", "rms z")  # fmt: skip
FAIRNESS = (
    "Three standard errors are lenient. The same count by narrower limits, and how far a cell is "
    "from the printed one in the median:"
)
OF_SEEDS = (
    "The seed draws the splits. For two of our own seeds the other one's number stands for the "
    "printed one, so their row is what the same protocol would give. In parentheses is the range; "
    "[the seeds](paper_seeds.md) have their counts by table and by method."
)
OUTDATED = (
    "At seed 0 {count} of these cells are not those of this page, so paper_seeds.csv was made with "
    "other settings or another version."
)


class Agreement(NamedTuple):
    """How many cells agree, and how far they are apart.

    Attributes:
        cells: their number.
        within_three, within_two: with a difference of at most so many joint standard errors.
        within_spread: with one of at most the other's ± (two standard errors).
        deviation: the median of |difference| / |the other value|.
        rms: the root of the mean square of difference / joint standard error.
    """

    cells: int
    within_three: int
    within_two: int
    within_spread: int
    deviation: float
    rms: float


def joint_error(two_se: pd.Series, other_two_se: pd.Series) -> pd.Series:
    """The standard error of a difference; a single split has no spread (NaN), counts as exact."""
    return ((two_se.fillna(0) / 2) ** 2 + (other_two_se.fillna(0) / 2) ** 2) ** 0.5


def z_of(difference: pd.Series, two_se: pd.Series, other_two_se: pd.Series) -> pd.Series:
    """Differences in joint standard errors; equal numbers are 0 apart, also without a spread."""
    z = difference / joint_error(two_se, other_two_se)
    return z.where(difference != 0, 0.0)


def rms(z: pd.Series) -> float:
    """The root of the mean square, 1 for differences of the size of their standard errors."""
    return float(np.sqrt(np.mean(np.square(z))))


def agreement(
    values: pd.Series, two_se: pd.Series, others: pd.Series, other_two_se: pd.Series
) -> Agreement:
    """Compare `values` with `others`, which have the same index; at least one of them."""
    difference = values - others
    z = z_of(difference, two_se, other_two_se)
    size = difference.abs()
    return Agreement(
        cells=len(values),
        within_three=int((z.abs() <= LIMIT).sum()),
        within_two=int((z.abs() <= 2).sum()),
        within_spread=int((size <= other_two_se * (1 + 1e-9)).sum()),
        deviation=float((size / others.abs()).median()),
        rms=rms(z),
    )


def with_printed(cells: pd.DataFrame) -> Agreement:
    """Our values of cells against the printed ones."""
    return agreement(cells["ours"], cells["ours_two_se"], cells["printed"], cells["printed_two_se"])


def between(seeds: pd.DataFrame) -> list[Agreement]:
    """Of each ordered pair of seeds how far the first agrees with the second; none of one seed."""
    of_seed = [rows.set_index(CELL) for _, rows in seeds.groupby("seed")]
    columns = ("ours", "ours_two_se")
    return [
        agreement(*(one[name] for name in columns), *(other[name] for name in columns))
        for one, other in permutations(of_seed, 2)
    ]


def seeds_below(folder: Path, cells: pd.DataFrame) -> pd.DataFrame | None:
    """The rows of `folder`/paper_seeds.csv for the `cells` of the closest suite, if there are any.

    `is_other` tells where the first seed's number is not that of `cells`.
    """
    path = folder / SEEDS_FILE
    if not path.exists():
        return None
    here = cells[cells["preset"]].set_index(CELL)["ours"]
    seeds = pd.read_csv(path)
    seeds = seeds.join(here.rename("here"), on=CELL, how="inner")
    if seeds.empty:
        return None
    is_first = seeds["seed"] == seeds["seed"].min()
    gap = (seeds["ours"] - seeds["here"]).abs()
    return seeds.assign(is_other=is_first & (gap > ROUNDED * seeds["here"].abs()))


def fairness_text(cells: pd.DataFrame, seeds: pd.DataFrame | None = None) -> str:
    """How the count depends on its limit, for both sets of `cells`, and for `seeds_below`."""
    lines = []
    for name, flag in (("Our default", "default"), (f"suite={CLOSEST}", "preset")):
        rows = cells[cells[flag]]
        if not rows.empty:
            lines.append(_line(name, [with_printed(rows)]))
    if not lines:
        return ""
    notes = []
    if seeds is not None:
        every = [with_printed(rows) for _, rows in seeds.groupby("seed")]
        lines.append(_line(f"suite={CLOSEST}, mean of {len(every)} seeds", every))
        pairs = between(seeds)
        if pairs:
            count = len(list(combinations(every, 2)))
            of_pairs = f"mean of {count} pairs" if count > 1 else "one pair"
            lines.append(_line(f"Two of our own seeds, {of_pairs}", pairs))
        notes.append(OF_SEEDS)
        n_other = int(seeds["is_other"].sum())
        if n_other:
            notes.append(OUTDATED.format(count=n_other))
    return "\n\n".join([FAIRNESS, markdown_table(HEADING, lines), *notes])


def _line(name: str, found: Sequence[Agreement]) -> list[str]:
    """A row of HEADING: the numbers of one agreement, or means with the range of counts."""
    cells, *columns = zip(*found, strict=True)
    *counts, deviations, sizes = columns
    deviation = f"{100 * np.mean(deviations):.1f} %"
    numbers = [_count(column) for column in counts]
    return [name, f"{cells[0]}", *numbers, deviation, f"{np.mean(sizes):.2f}"]


def _count(counts: Sequence[Any]) -> str:
    if len(counts) == 1:
        return f"{counts[0]}"
    return f"{np.mean(counts):.1f} ({min(counts)} … {max(counts)})"
