"""Our numbers against the paper's printed ones, cell by cell, for every available alternative.

A printed cell is `printed_mean x 10^-power_of_ten` with a spread of two standard errors. Cells
agree when |z| <= 3, z = (ours - printed) / sqrt(se_ours² + se_printed²), se = two_se / 2. Where the
paper leaves a choice open, several of our results can belong to one printed row (another
checkpoint, another isotonic variant, utility metrics on fewer points): all are compared. Two sets
are counted: our defaults, and the one rule for all tables of `preset=paper`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import DictConfig, OmegaConf

from metrics.registry import metric
from pipeline.harness.artifacts import read_json, write_text
from pipeline.harness.command import CONF
from pipeline.harness.units import composed
from pipeline.reporting.names import family, method_name
from pipeline.reporting.wording import decimals, markdown_table, number
from pipeline.scoring.files import ALL_SPLITS, DEFAULT_EVALUATION, ScoreFiles, Scores, csv_text
from pipeline.scoring.inference import two_standard_errors

PRINTED_VALUES = Path(__file__).with_name("paper_tables.csv")
NOTES = Path(__file__).with_name("paper_notes.csv")
TABLE_ONE_SUFFIX = "_table1"
LIMIT = 3.0
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
SUMMARY_HEADING = ("Printed table", "Our default", "preset=paper")
RULE = (
    "The default is what we would use. preset=paper is one choice of settings for all tables, the "
    "one that comes closest to the paper. comparison.csv has every alternative that was scored."
)
COLUMNS = ("Method", "Metric", "Printed", "Ours", "Difference", "z", "")
LEFT = "Printed cells that preset=paper leaves more than 3 s.e. apart, and what is known of them:"
LEFT_COLUMNS = ("Table", *COLUMNS[:-1], "Reason")
UNEXPLAINED = "unexplained"

Line = Sequence[str]


def paper_cells(results: Path, splits: int) -> pd.DataFrame:
    """Every printed cell with each of our results over `splits` splits that can belong to it."""
    benchmarks = paper_benchmarks()
    config = composed(["preset=paper"])
    rule = {
        "benchmark": list(config.suite.benchmarks),
        "variant": list(config.suite.calibrators),
        "configuration": [_configuration(config.evaluation.name)],
    }
    return compare(our_results(results, benchmarks, splits), printed_values(benchmarks), rule)


def paper_benchmarks() -> dict[str, DictConfig]:
    """The benchmarks of conf/ with a `paper_key` by name, those named like their key first."""
    contents = {
        path.stem: DictConfig(OmegaConf.load(path))
        for path in sorted((CONF / "benchmark").glob("*.yaml"))
    }
    printed = {name: content for name, content in contents.items() if content.get("paper_key")}
    return dict(sorted(printed.items(), key=lambda item: item[0] != item[1].paper_key))


def _configuration(evaluation: str) -> str:
    return "" if evaluation == DEFAULT_EVALUATION else f"evaluation={evaluation}"


def printed_values(benchmarks: Mapping[str, DictConfig] | None = None) -> pd.DataFrame:
    """The paper's cells, unscaled: table, method, metric, power_of_ten, printed, printed_two_se.

    Further columns: the `title` of the table for people, and the `paper_key` of its benchmarks.
    """
    cells = pd.read_csv(PRINTED_VALUES).rename(columns={"benchmark": "table"})
    scale = 10.0 ** cells["power_of_ten"]
    # Rounded far below the printed digits: 0.939, not 0.9390000000000001.
    cells["printed"] = (cells["printed_mean"] / scale).round(12)
    cells["printed_two_se"] = (cells["printed_two_se"] / scale).round(12)
    cells["paper_key"] = cells["table"].str.removesuffix(TABLE_ONE_SUFFIX)
    titles: dict[str, str] = {}
    for benchmark in (benchmarks or {}).values():
        titles.setdefault(benchmark.paper_key, benchmark.title)
    title = cells["paper_key"].map(lambda key: titles.get(key, key))
    cells["title"] = title.where(cells["table"] == cells["paper_key"], title + " (Table 1)")
    return cells.drop(columns="printed_mean")


def our_results(results: Path, benchmarks: Mapping[str, DictConfig], splits: int) -> pd.DataFrame:
    """The means of all results over `splits` splits that can belong to a printed table.

    Besides the benchmarks of conf/ these are those called `<paper key>_<what>`
    (`benchmark.name=cifar10_repvgg_a2 ...`), with all methods, variants and evaluations that were
    scored. `candidate` numbers the pairs of benchmark and evaluation, defaults first.
    """
    names, ordered = list(benchmarks), []
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        name, evaluation = facts["benchmark"], facts["evaluation"]["name"]
        alike = [
            benchmark.paper_key
            for own_name, benchmark in benchmarks.items()
            if name == own_name or name.startswith(f"{benchmark.paper_key}_")
        ]
        if alike and facts["splits"]["count"] == splits:
            place = names.index(name) if name in names else len(names)
            ordered.append((evaluation != DEFAULT_EVALUATION, evaluation, place, name, alike[0]))
    tables = []
    for candidate, (_, evaluation, _, name, key) in enumerate(sorted(ordered)):
        scores = Scores.read(ScoreFiles(results, name, evaluation))
        assert scores is not None  # its facts were read above
        rows = scores.own_rows().rename(columns={"calibrator": "variant", "value": "ours"})
        rows = rows[rows["ours"].notna()]
        is_mean, by = rows["split"] == ALL_SPLITS, ["variant", "metric"]
        spread = rows[~is_mean].groupby(by)["ours"].agg(two_standard_errors)
        table = rows[is_mean][[*by, "ours"]].join(spread.rename("ours_two_se"), on=by)
        shared = {"candidate": candidate, "paper_key": key, "benchmark": name}
        tables.append(table.assign(**shared, configuration=_configuration(evaluation)))
    return pd.concat(tables, ignore_index=True)


def compare(
    ours: pd.DataFrame, printed: pd.DataFrame, rule: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """All comparable cells (CELL_COLUMNS and `title`), unscaled, in the printed order.

    The first candidate of a paper key is its default; its rows of the unvaried methods have
    `default` set. What `rule` takes, by its values of columns, has `preset` set. Cells of the paper
    that a candidate lacks are left out.
    """
    ours = ours.assign(method=ours["variant"].map(family))
    ours["variant_order"] = ours.groupby(["candidate", "method", "metric"]).cumcount()
    cells = printed.reset_index(names="place").merge(ours, on=["paper_key", "method", "metric"])
    cells["table_order"] = cells.groupby("table")["place"].transform("min")
    cells = cells.sort_values(
        ["table_order", "candidate", "variant_order", "place"], ignore_index=True
    )
    first = ours.groupby("paper_key")["candidate"].min()
    is_first = cells["candidate"] == cells["paper_key"].map(first)
    cells["default"] = is_first & (cells["variant"] == cells["method"])
    cells["preset"] = cells[list(rule)].isin(rule).all(axis=1)
    cells["difference"] = cells["ours"] - cells["printed"]
    # A single split has no spread (NaN) and counts as exact: z is 0 or infinite without any spread.
    joint = np.hypot(cells["ours_two_se"].fillna(0) / 2, cells["printed_two_se"].fillna(0) / 2)
    cells["z"] = (cells["difference"] / joint).where(cells["difference"] != 0, 0.0)
    cells["outside"] = cells["z"].abs() > LIMIT
    return cells[[*CELL_COLUMNS, "title"]]


def write_comparison(cells: pd.DataFrame, folder: Path) -> list[Path]:
    """Write `comparison.md`, and `comparison.csv` with all alternatives, unscaled."""
    parts = [f"# {TITLE}", INTRO, markdown_table(SUMMARY_HEADING, summary_lines(cells)), RULE]
    if left := left_lines(cells):
        parts += [LEFT, markdown_table(LEFT_COLUMNS, left)]
    for title, rows in cells.groupby("title", sort=False):
        default = rows[rows["default"]]
        parts += [f"## {title}", f"{_count(default)} (our default)."]
        parts.append(markdown_table(COLUMNS, cell_lines(default)))
    texts = {"md": "\n\n".join(parts) + "\n", "csv": csv_text(cells[list(CELL_COLUMNS)])}
    return [write_text(folder / f"comparison.{kind}", text) for kind, text in texts.items()]


def _count(cells: pd.DataFrame) -> str:
    """`38 of 42 within 3 s.e.`; empty where there is no cell."""
    within = (~cells["outside"]).sum()
    return "" if cells.empty else f"{within} of {len(cells)} within {LIMIT:g} s.e."


def summary_lines(cells: pd.DataFrame) -> list[Line]:
    """Per printed table: its title and the counts of the default and of preset=paper; the sums."""
    sets = [cells[cells["default"]], cells[cells["preset"]]]
    titles = cells["title"].unique()
    lines: list[Line] = [
        (title, *(_count(rows[rows["title"] == title]) for rows in sets)) for title in titles
    ]
    covered = sets[1]["title"].unique()
    if len(titles) > 1 and len(covered):
        # Of the tables that the rule covers, so that the columns can be compared.
        sums = (_count(rows[rows["title"].isin(covered)]) for rows in sets)
        lines.append(("All with preset=paper", *sums))
    return lines


def left_lines(cells: pd.DataFrame) -> list[Line]:
    """The LEFT_COLUMNS of the cells that preset=paper leaves outside.

    The reasons are tested ones, conjectures and oddities (NOTES); the method `*` is for all methods
    of a table's column.
    """
    notes = pd.read_csv(NOTES).set_index(["table", "method", "metric"])["note"].to_dict()
    lines: list[Line] = []
    for title, rows in cells[cells["preset"]].groupby("title", sort=False):
        for line, row in zip(cell_lines(rows), rows.to_dict("records"), strict=True):
            if row["outside"]:
                of_column = notes.get((row["table"], "*", row["metric"]), UNEXPLAINED)
                reason = notes.get((row["table"], row["method"], row["metric"]), of_column)
                lines.append((str(title), *line[:-1], reason))
    return lines


def cell_lines(cells: pd.DataFrame) -> list[Line]:
    """The COLUMNS of each cell of one printed table, scaled and rounded."""
    digits = {str(key): _digits(rows, str(key)) for key, rows in cells.groupby("metric")}
    return [_cell_line(row, digits[row["metric"]]) for row in cells.to_dict("records")]


def _digits(cells: pd.DataFrame, key: str) -> int:
    """Decimal places of a column: as many as our spreads need, at least those that are printed."""
    scale = 10.0 ** metric(key).power
    digits = decimals(*(list(cells[name] * scale) for name in ("ours", "ours_two_se")))
    # The paper's trailing zeros aside.
    printed = [f"{value:.4f}".rstrip("0").partition(".")[2] for value in cells["printed"] * scale]
    return max(digits, *map(len, printed))


def _cell_line(row: Mapping[Hashable, Any], digits: int) -> Line:
    column, z = metric(row["metric"]), row["z"]
    scale = 10.0**column.power
    signs = ["+" if value > 0 else "" for value in (row["difference"], z)]
    pairs = [
        " ± ".join(number(row[part] * scale, digits) for part in (name, f"{name}_two_se"))
        for name in ("printed", "ours")
    ]
    return (
        method_name(row["variant"]),
        f"{column.text} {column.scale}",
        *pairs,
        signs[0] + number(row["difference"] * scale, digits),
        signs[1] + number(z, 1),
        "" if abs(z) <= LIMIT else "▲" if z > 0 else "▼",
    )
