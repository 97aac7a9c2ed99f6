"""What each calibrator changes, in print and in our results: a method minus uncalibrated.

Both methods of a difference were scored on the same test points. What the points have in common
cancels, so the difference has a smaller error than either cell and shows what the cells hide.
"""

import math
from pathlib import Path

import pandas as pd

from utility_calibration.metrics.registry import metric

from ..harness.artifacts import write_text
from ..scoring.choice import PRESENT
from ..scoring.files import csv_text
from ..scoring.inference import two_standard_errors
from .agreement import LIMIT
from .names import method_name
from .wording import decimals, markdown_table, number

PRINTED = ("printed_change", "printed_unit")
COLUMNS = (
    *("table", "method", "metric", "benchmark", "configuration", "variant"),
    *(*PRINTED, "change", "change_two_se", "change_z"),
)
TITLE = "What calibration changes, in print and here"
INTRO = (
    "A line has the printed mean of a method minus that of the uncalibrated row, and the same "
    "difference of ours, taken within each split and averaged, ± two standard errors over the "
    "splits. The settings are those of suite=paper_closest."
)
ERROR = (
    "The paper prints no error of a difference. Here z takes it to be as large as ours, and adds "
    "the rounding of both printed numbers (unit² / 12 each). Splits share test points, so that the "
    f"standard errors are approximate. Differences with |z| > {LIMIT:g} are marked ▲ (ours is "
    "larger) or ▼ (smaller)."
)
HEADING = ("Method", "Metric", "Printed", "Ours", "z", "")
COUNT_HEADING = ("Metric", "Differences", "Same sign", f"Within {LIMIT:g} s.e.")


def changes_of(rows: pd.DataFrame) -> pd.DataFrame:
    """`change` and `change_two_se` by `variant` and `metric`: means over splits, unscaled.

    `rows` has the value `ours` of each `variant`, `metric` and `split`. Without an uncalibrated
    row the result is empty.
    """
    wide = rows.pivot(index=["metric", "split"], columns="variant", values="ours")
    if PRESENT not in wide:
        wide = wide.assign(**{PRESENT: float("nan")})
    differences = wide.drop(columns=PRESENT).sub(wide[PRESENT], axis=0)
    by_split = differences.reset_index()
    long = by_split.melt(["metric", "split"], var_name="variant", value_name="change")
    groups = long.dropna().groupby(["variant", "metric"])["change"]
    return pd.DataFrame({"change": groups.mean(), "change_two_se": groups.agg(two_standard_errors)})


def with_printed_changes(printed: pd.DataFrame) -> pd.DataFrame:
    """The printed cells with `printed_change`, NaN in the uncalibrated row itself.

    `printed_unit` becomes the coarser one of the two cells.
    """
    by = ["table", "metric"]
    before = printed[printed["method"] == PRESENT].set_index(by)
    joined = printed.join(before[["printed", "printed_unit"]].add_prefix("before_"), on=by)
    change = (joined["printed"] - joined["before_printed"]).where(printed["method"] != PRESENT)
    unit = joined[["printed_unit", "before_printed_unit"]].max(axis=1)
    # Rounded far below the printed digits, as the cells are.
    return printed.assign(printed_change=change.round(12), printed_unit=unit)


def with_changes(cells: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    """The cells of the comparison with `change`, `change_two_se` and `change_z` (see ERROR).

    `changes` has the results of `changes_of` with the columns `benchmark` and `configuration`.
    """
    by = ["benchmark", "configuration", "variant", "metric"]
    paired = cells.merge(changes.reset_index(), on=by, how="left")
    ours = (paired["change_two_se"].fillna(0) / 2) ** 2
    rounding = paired["printed_unit"] ** 2 / 12
    difference = paired["change"] - paired["printed_change"]
    return paired.assign(change_z=difference / (2 * ours + 2 * rounding) ** 0.5)


def write_paired(cells: pd.DataFrame, folder: Path) -> list[Path]:
    """Write comparison_paired.md and .csv of the cells of suite=paper_closest."""
    paired = cells[cells["preset"]].dropna(subset=["printed_change", "change"])
    parts = [f"# {TITLE}", INTRO, ERROR]
    if not paired.empty:
        parts.append(markdown_table(COUNT_HEADING, count_lines(paired)))
    for title, rows in paired.groupby("title", sort=False):
        parts += [f"## {title}", markdown_table(HEADING, change_lines(rows))]
    texts = {"md": "\n\n".join(parts) + "\n", "csv": csv_text(paired[list(COLUMNS)])}
    return [write_text(folder / f"comparison_paired.{kind}", text) for kind, text in texts.items()]


def same_sign(paired: pd.DataFrame) -> pd.Series:
    """Whether print and ours move the metric to the same side; a printed zero has no side."""
    return paired["change"] * paired["printed_change"] > 0


def count_lines(paired: pd.DataFrame) -> list[tuple[str, ...]]:
    """Per metric how many differences agree in sign, and within LIMIT standard errors."""
    lines: list[tuple[str, ...]] = []
    for key, rows in paired.groupby("metric", sort=False):
        within = (rows["change_z"].abs() <= LIMIT).sum()
        sided = rows[rows["printed_change"] != 0]
        signs = f"{same_sign(sided).sum()} of {len(sided)}"
        lines.append((metric(str(key)).text, str(len(rows)), signs, str(within)))
    return lines


def change_lines(paired: pd.DataFrame) -> list[tuple[str, ...]]:
    """The HEADING of each difference of one printed table, scaled as the paper's tables."""
    digits = {}
    for key, rows in paired.groupby("metric"):
        scale = 10.0 ** metric(str(key)).power
        digits[key] = decimals(list(rows["change"] * scale), list(rows["change_two_se"] * scale))
    lines: list[tuple[str, ...]] = []
    for row in paired.to_dict("records"):
        column, places = metric(row["metric"]), digits[row["metric"]]
        scale, z = 10.0**column.power, row["change_z"]
        ours = signed(row["change"] * scale, places)
        spread = number(row["change_two_se"] * scale, places)
        mark = "" if abs(z) <= LIMIT else "▲" if z > 0 else "▼"
        printed_places = max(0, round(-math.log10(row["printed_unit"] * scale)))
        printed = signed(row["printed_change"] * scale, printed_places)
        name, heading = method_name(row["variant"]), f"{column.text} {column.scale}"
        lines.append((name, heading, printed, f"{ours} ± {spread}", signed(z, 1), mark))
    return lines


def signed(value: float, places: int) -> str:
    """A number with its sign: `+0.2`, `-0.1`."""
    return ("+" if round(value, places) > 0 else "") + number(value, places)
