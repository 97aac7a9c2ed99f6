"""Our numbers against the paper's printed ones, cell by cell, for every available alternative.

A printed cell is `printed_mean x 10^-power_of_ten` with a spread of two standard errors. Cells
agree when |z| <= 3, z = (ours - printed) / sqrt(se_ours² + se_printed²), se = two_se / 2. Where the
paper leaves a choice open, several of our results can belong to one printed row (another
checkpoint, another isotonic variant, utility metrics on fewer points): all are compared. Two sets
are counted: our defaults, and the one rule for all tables of `suite=paper_closest`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from omegaconf import DictConfig

from utility_calibration.metrics.registry import metric

from ..harness.artifacts import write_text
from ..harness.settings import DEFAULT_EVALUATION
from ..harness.units import Request
from ..scoring.files import ALL_SPLITS, ScoreFiles, Scores, csv_text
from ..scoring.inference import two_standard_errors
from .agreement import LIMIT, fairness_text, joint_error, rms, seeds_below, z_of
from .candidates import benchmarks_of_the_paper, rule_of_closest, scored_candidates
from .names import family, method_name
from .paired import PRINTED, changes_of, with_changes, with_printed_changes
from .wording import TextTable, decimals, markdown_table, number

PRINTED_VALUES = Path(__file__).with_name("paper_tables.csv")
NOTES = Path(__file__).with_name("paper_notes.csv")
TABLE_ONE_SUFFIX = "_table1"
CELL_COLUMNS = (
    *("table", "method", "metric", "benchmark", "configuration", "variant", "default", "preset"),
    *("printed", "printed_two_se", "ours", "ours_two_se", "difference", "z", "outside"),
    "power_of_ten",
)
TITLE = "Comparison with the printed numbers"
INTRO = (
    "A line has the printed value, ours, their difference and z = difference / sqrt(se² + se²). A "
    "standard error se is half of the ± beside a mean; both are taken over random splits of the "
    f"same test points. Cells with |z| > {LIMIT:g} are marked ▲ (ours is larger) or ▼ (smaller). "
    "Values are scaled as in the paper's tables."
)
SUMMARY_HEADING = ("Printed table", "Our default", "suite=paper_closest")
SUMMARY_NOTE = (
    "The table counts the printed cells that ours match within three joint standard errors; "
    "tables/comparison.md has each cell."
)
RULE = (
    "The default is what we would use. suite=paper_closest is one choice of settings for all "
    "tables, the one that comes closest to the paper. comparison.csv has every alternative that "
    "was scored. Rms z is the root of the mean z², about 1 for the same protocol."
)
SPREAD = (
    "The captions of the appendix call ± a standard deviation, Table 1 calls the same numbers two "
    "standard errors. The second is right: the accuracy on 3,000 of 10,000 points has, over ten "
    "splits, a standard error of .11 (RepVGG-A0) and .21 (CIFAR-100 ResNet-56), ×10², and the "
    "tables print ± .2 and ± .4. By the captions' word {default} (default) and {preset} "
    "(paper_closest) of the cells would be within {limit:g} s.e."
)
COLUMNS = ("Method", "Metric", "Printed", "Ours", "Difference", "z", "")
LEFT = (
    "Printed cells that suite=paper_closest leaves more than 3 s.e. apart, and what is known of "
    "them:"
)
LEFT_COLUMNS = ("Table", *COLUMNS[:-1], "Reason")
Line = Sequence[str]


def paper_cells(results: Path, splits: int, request: Request) -> pd.DataFrame:
    """Every printed cell with each of our results over `splits` splits that can belong to it.

    Those are the configured benchmarks with a `paper_key`, and all called `<paper key>_<what>`,
    with all methods, variants and evaluations that were scored. `candidate` numbers the pairs of
    benchmark and evaluation, defaults first: those named like their key come before others.
    suite=paper_closest is counted for its own benchmarks, and where it is the `request`, for the
    request's benchmarks in place of those with the same `paper_key`.
    """
    benchmarks = benchmarks_of_the_paper()
    tables, changes = [], []
    for candidate, (evaluation, name, key) in enumerate(
        scored_candidates(results, splits, benchmarks)
    ):
        scores = Scores.read(ScoreFiles.below(results, name, evaluation))
        assert scores is not None  # its facts were read above
        rows = scores.own_rows().rename(columns={"calibrator": "variant", "value": "ours"})
        rows = rows[rows["ours"].notna()]
        is_mean, by = rows["split"] == ALL_SPLITS, ["variant", "metric"]
        spread = rows[~is_mean].groupby(by)["ours"].agg(two_standard_errors)
        table = rows[is_mean][[*by, "ours"]].join(spread.rename("ours_two_se"), on=by)
        is_other = evaluation != DEFAULT_EVALUATION
        configuration = f"evaluation={evaluation}" if is_other else ""
        table = table.assign(candidate=candidate, paper_key=key)
        tables.append(table.assign(benchmark=name, configuration=configuration))
        change = changes_of(rows[~is_mean])
        changes.append(change.assign(benchmark=name, configuration=configuration))
    rule = rule_of_closest(benchmarks, request)
    cells = compare(pd.concat(tables, ignore_index=True), printed_values(benchmarks), rule)
    return with_changes(cells, pd.concat(changes))


def printed_values(benchmarks: Mapping[str, DictConfig] | None = None) -> pd.DataFrame:
    """The paper's cells, unscaled, with `title` and `paper_key` of their table's benchmarks.

    `printed_unit` is the step of the last printed digit, `printed_change` the printed value minus
    that of the uncalibrated row.
    """
    cells = pd.read_csv(PRINTED_VALUES, dtype={"printed_mean": str})
    cells = cells.rename(columns={"benchmark": "table"})
    scale = 10.0 ** cells["power_of_ten"]
    # The paper prints the decimals of a column, but no more than three significant digits.
    texts = cells["printed_mean"].str.rstrip("0").str.partition(".")[2].str.len()
    places = texts.groupby([cells["table"], cells["metric"]]).transform("max")
    third_digit = np.floor(np.log10(cells["printed_mean"].astype(float))) - 2
    cells["printed_unit"] = 10.0 ** np.maximum(-places, third_digit) / scale
    cells["printed_mean"] = cells["printed_mean"].astype(float)
    # Rounded far below the printed digits: 0.939, not 0.9390000000000001.
    cells["printed"] = (cells["printed_mean"] / scale).round(12)
    cells["printed_two_se"] = (cells["printed_two_se"] / scale).round(12)
    cells["paper_key"] = cells["table"].str.removesuffix(TABLE_ONE_SUFFIX)
    contents = reversed(list((benchmarks or {}).values()))  # the first one of a key names it
    titles = {content.paper_key: content.title for content in contents}
    title = cells["paper_key"].replace(titles)
    cells["title"] = title.where(cells["table"] == cells["paper_key"], title + " (Table 1)")
    return with_printed_changes(cells.drop(columns="printed_mean"))


def compare(
    ours: pd.DataFrame, printed: pd.DataFrame, rule: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """All comparable cells (CELL_COLUMNS, PRINTED, `title`), unscaled, in the printed order.

    The first candidate of a paper key is its default; its rows of the unvaried methods have
    `default` set. What `rule` takes, by its values of columns, has `preset` set. Cells of the paper
    that a candidate lacks are left out.
    """
    ours = ours.assign(method=ours["variant"].map(family))
    ours["variant_order"] = ours.groupby(["candidate", "method", "metric"]).cumcount()
    cells = printed.reset_index(names="place").merge(ours, on=["paper_key", "method", "metric"])
    cells["table_order"] = cells.groupby("table")["place"].transform("min")
    order = ["table_order", "candidate", "variant_order", "place"]
    cells = cells.sort_values(order, ignore_index=True)
    first = ours.groupby("paper_key")["candidate"].min()
    is_first = cells["candidate"] == cells["paper_key"].map(first)
    cells["default"] = is_first & (cells["variant"] == cells["method"])
    cells["preset"] = cells[list(rule)].isin(rule).all(axis=1) if rule else False
    cells["difference"] = cells["ours"] - cells["printed"]
    cells["z"] = z_of(cells["difference"], cells["ours_two_se"], cells["printed_two_se"])
    cells["outside"] = cells["z"].abs() > LIMIT
    return cells[[*CELL_COLUMNS, *PRINTED, "title"]]


def write_comparison(cells: pd.DataFrame, folder: Path) -> list[Path]:
    """Write `comparison.md`, and `comparison.csv` with all alternatives, unscaled.

    The counts of other seeds are of the table `paper_seeds.csv` in `folder`, if it is there.
    """
    parts = [f"# {TITLE}", INTRO, summary_of(cells).markdown(), RULE]
    parts += [fairness_text(cells, seeds_below(folder, cells)), spread_text(cells)]
    left = left_lines(cells)
    if left:
        parts += [LEFT, markdown_table(LEFT_COLUMNS, left)]
    for title, rows in cells.groupby("title", sort=False):
        default = rows[rows["default"]]
        parts += [f"## {title}", f"{_count(default)} (our default)."]
        parts.append(markdown_table(COLUMNS, cell_lines(default)))
    texts = {"md": "\n\n".join(parts) + "\n", "csv": csv_text(cells[list(CELL_COLUMNS)])}
    return [write_text(folder / f"comparison.{kind}", text) for kind, text in texts.items()]


def _count(cells: pd.DataFrame) -> str:
    """`38 of 42 within 3 s.e., rms z 1.2`; empty where there is no cell."""
    if cells.empty:
        return ""
    within = (~cells["outside"]).sum()
    return f"{within} of {len(cells)} within {LIMIT:g} s.e., rms z {rms(cells['z']):.1f}"


def spread_text(cells: pd.DataFrame) -> str:
    """What ± means, with the counts if it were a standard deviation over ten splits."""
    of_mean = 2 * cells["printed_two_se"] / 10**0.5
    z = cells["difference"] / joint_error(cells["ours_two_se"], of_mean)
    covered = cells["title"].isin(cells.loc[cells["preset"], "title"])
    within = (z.abs() <= LIMIT) & covered
    counts = {name: int((within & cells[name]).sum()) for name in ("default", "preset")}
    return SPREAD.format(**counts, limit=LIMIT)


def summary_of(cells: pd.DataFrame) -> TextTable:
    """Per printed table: its title, counts of the default and of suite=paper_closest; the sums."""
    sets = [cells[cells["default"]], cells[cells["preset"]]]
    titles = cells["title"].unique()
    parts = {title: [rows[rows["title"] == title] for rows in sets] for title in titles}
    names = {title: [_other(rows[1], rows[0])] for title, rows in parts.items()}
    lines: list[Line] = [
        (title, _count(part[0]), " ".join([_count(part[1]), *names[title]]).strip())
        for title, part in parts.items()
    ]
    covered = sets[1]["title"].unique()
    if len(titles) > 1 and len(covered):
        # Of the tables that the rule covers, so that the columns can be compared.
        sums = (_count(rows[rows["title"].isin(covered)]) for rows in sets)
        lines.append(("All with suite=paper_closest", *sums))
    return TextTable("Against the paper", SUMMARY_HEADING, lines, SUMMARY_NOTE)


def _other(rows: pd.DataFrame, default: pd.DataFrame) -> str:
    """The benchmark behind `rows` in parentheses, if it is not that of the default's rows."""
    names = [name for name in rows["benchmark"].unique() if name not in set(default["benchmark"])]
    return f"({', '.join(names)})" if names else ""


def left_lines(cells: pd.DataFrame) -> list[Line]:
    """The LEFT_COLUMNS of cells that suite=paper_closest leaves outside, reasons out of NOTES."""
    notes = pd.read_csv(NOTES).set_index(["table", "method", "metric"])["note"].to_dict()
    lines: list[Line] = []
    for title, rows in cells[cells["preset"]].groupby("title", sort=False):
        default = cells[cells["default"] & (cells["title"] == title)]
        table = f"{title} {_other(rows, default)}".strip()
        for line, row in zip(cell_lines(rows), rows.to_dict("records"), strict=True):
            if row["outside"]:
                methods = (row["method"], "*")
                reasons = (notes.get((row["table"], method, row["metric"])) for method in methods)
                reason = next(filter(None, reasons), "unexplained")
                lines.append((table, *line[:-1], reason))
    return lines


def cell_lines(cells: pd.DataFrame) -> list[Line]:
    """The COLUMNS of each cell of one printed table, in at least the digits that are printed."""
    digits: dict[str, int] = {}
    for key, rows in cells.groupby("metric"):
        scale = 10.0 ** metric(str(key)).power
        needed = decimals(list(rows["ours"] * scale), list(rows["ours_two_se"] * scale))
        texts = [f"{value:.4f}" for value in rows["printed"] * scale]
        printed = [text.rstrip("0").partition(".")[2] for text in texts]  # without trailing zeros
        digits[str(key)] = max(needed, *map(len, printed))
    lines: list[Line] = []
    for row in cells.to_dict("records"):
        column, z, places = metric(row["metric"]), row["z"], digits[row["metric"]]
        scale = 10.0**column.power
        both = [(row[name], row[f"{name}_two_se"]) for name in ("printed", "ours")]
        pairs = [" ± ".join(number(value * scale, places) for value in pair) for pair in both]
        difference = number(row["difference"] * scale, places)
        signs = ["+" if value > 0 else "" for value in (row["difference"], z)]
        lines.append(
            (
                method_name(row["variant"]),
                f"{column.text} {column.scale}",
                *pairs,
                signs[0] + difference,
                signs[1] + number(z, 1),
                "" if abs(z) <= LIMIT else "▲" if z > 0 else "▼",
            )
        )
    return lines
