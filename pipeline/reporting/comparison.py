"""Our numbers against the paper's printed ones, cell by cell, for every available alternative.

A printed cell is `printed_mean x 10^-power_of_ten` with a spread of two standard errors. Cells
agree when |z| <= 3, z = (ours - printed) / sqrt(se_ours² + se_printed²), se = two_se / 2. Where the
paper leaves a choice open, several of our results can belong to one printed row (another
checkpoint, another isotonic variant, utility metrics on fewer points): all are compared. Two sets
are counted: our defaults, and the one rule for all tables of `preset=paper`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from omegaconf import DictConfig, OmegaConf

from pipeline.harness.artifacts import read_json
from pipeline.harness.command import CONF
from pipeline.harness.units import composed
from pipeline.reporting.collect import Scores, summarise
from pipeline.reporting.names import family
from pipeline.scoring.files import DEFAULT_EVALUATION, ScoreFiles

PRINTED_VALUES = Path(__file__).with_name("paper_tables.csv")
NOTES = Path(__file__).with_name("paper_notes.csv")
TABLE_ONE_SUFFIX = "_table1"
LIMIT = 3.0

CELL_COLUMNS = (
    *("table", "method", "metric", "benchmark", "configuration", "variant", "default", "preset"),
    *("printed", "printed_two_se", "ours", "ours_two_se", "difference", "z", "outside"),
    "power_of_ten",
)


class PaperBenchmark(NamedTuple):
    """A benchmark of conf/ that names the printed table it belongs to."""

    name: str
    title: str
    paper_key: str


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


def paper_benchmarks() -> list[PaperBenchmark]:
    """The benchmarks of conf/ with a `paper_key`, those named like their key first."""
    contents = {
        path.stem: DictConfig(OmegaConf.load(path))
        for path in sorted((CONF / "benchmark").glob("*.yaml"))
    }
    benchmarks = [
        PaperBenchmark(name, content["title"], content["paper_key"])
        for name, content in contents.items()
        if content.get("paper_key")
    ]
    return sorted(benchmarks, key=lambda benchmark: benchmark.name != benchmark.paper_key)


def _configuration(evaluation: str) -> str:
    return "" if evaluation == DEFAULT_EVALUATION else f"evaluation={evaluation}"


def printed_values(benchmarks: Sequence[PaperBenchmark] = ()) -> pd.DataFrame:
    """The paper's cells, unscaled: table, method, metric, power_of_ten, printed, printed_two_se.

    Further columns: the `title` of the table for people, and the `paper_key` of its benchmarks.
    """
    cells = pd.read_csv(PRINTED_VALUES).rename(columns={"benchmark": "table"})
    scale = 10.0 ** cells["power_of_ten"]
    # Rounded far below the printed digits: 0.939, not 0.9390000000000001.
    cells["printed"] = (cells["printed_mean"] / scale).round(12)
    cells["printed_two_se"] = (cells["printed_two_se"] / scale).round(12)
    cells["paper_key"] = cells["table"].str.removesuffix(TABLE_ONE_SUFFIX)
    titles = {benchmark.paper_key: benchmark.title for benchmark in reversed(benchmarks)}
    title = cells["paper_key"].map(lambda key: titles.get(key, key))
    cells["title"] = title.where(cells["table"] == cells["paper_key"], title + " (Table 1)")
    return cells.drop(columns="printed_mean")


def our_results(results: Path, benchmarks: Sequence[PaperBenchmark], splits: int) -> pd.DataFrame:
    """The means of all results over `splits` splits that can belong to a printed table.

    Besides the benchmarks of conf/ these are those called `<paper key>_<what>`: the same benchmark
    run under another name (`benchmark.name=cifar10_repvgg_a2 ...`). All methods and variants that
    were scored take part, in every evaluation. `candidate` numbers the pairs of benchmark and
    evaluation, defaults first.
    """
    names = [benchmark.name for benchmark in benchmarks]
    results_of_paper = []
    for path in sorted((results / "scores").glob("*.json")):
        facts = read_json(path)
        name, evaluation = facts["benchmark"], facts["evaluation"]["name"]
        alike = (b for b in benchmarks if name == b.name or name.startswith(f"{b.paper_key}_"))
        benchmark = next(alike, None)
        if benchmark is not None and facts["splits"]["count"] == splits:
            place = names.index(name) if name in names else len(names)
            order = (evaluation != DEFAULT_EVALUATION, evaluation, place, name)
            results_of_paper.append((*order, benchmark.paper_key))
    tables = []
    for candidate, (_, evaluation, _, name, key) in enumerate(sorted(results_of_paper)):
        scores = Scores.read(ScoreFiles(results, name, evaluation))
        assert scores is not None  # its facts were read above
        table = summarise(scores)[["method", "metric", "mean", "two_se"]]
        table.columns = ["variant", "metric", "ours", "ours_two_se"]
        configuration = _configuration(evaluation)
        tables.append(
            table.assign(
                candidate=candidate, paper_key=key, benchmark=name, configuration=configuration
            )
        )
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
    cells["z"] = _z_scores(cells)
    cells["outside"] = cells["z"].abs() > LIMIT
    return cells[[*CELL_COLUMNS, "title"]]


def _z_scores(cells: pd.DataFrame) -> pd.Series:
    """Difference over the joint standard error; where that is zero or unknown, 0 or ±inf.

    A single split has no spread (NaN) and counts as exact.
    """
    joint = np.hypot(cells["ours_two_se"].fillna(0) / 2, cells["printed_two_se"].fillna(0) / 2)
    return (cells["difference"] / joint).where(cells["difference"] != 0, 0.0)
