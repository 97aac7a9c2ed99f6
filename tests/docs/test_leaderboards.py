"""The tables of who wins, in the README, choosing.md and peers.md, are what the results say."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

from pipeline.reporting.names import method_name
from tests.docs.pages import README, ROOT

PAGE = ROOT / "docs" / "methods" / "peers.md"
CHOOSING = ROOT / "docs" / "choosing.md"
PURPOSES = ("u_cwe", "u_topk", "u_dcg", "u_rank_q95", "nll")
TABLES = ROOT / "results" / "tables"
EXTENDED = ROOT / "results" / "extended" / "tables"
BENCHMARKS = (
    "cifar10_repvgg",
    "cifar10_resnet",
    "cifar10_resnet44",
    "cifar100_repvgg",
    "cifar100_resnet",
)


def name_in_table(method: str) -> str:
    return method_name(method).removesuffix(" (probmetrics)")


def cells_of(tables: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of all benchmarks' CSV files, by the name of the method."""
    rows_of: dict[str, list[dict[str, str]]] = defaultdict(list)
    for benchmark in BENCHMARKS:
        with (tables / f"{benchmark}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                rows_of[name_in_table(row["method"])].append({**row, "benchmark": benchmark})
    return rows_of


def table_after(page: Path, heading: str) -> dict[str, list[str]]:
    """The first table under a heading: the cells of each line, by its first one."""
    text = page.read_text(encoding="utf-8").split(heading)[1]
    block = re.search(r"(?:^.*\|.*\n)+", text, re.MULTILINE)
    assert block is not None
    lines = [line.strip("| ").split(" | ") for line in block[0].splitlines()[2:]]
    return {name: values for name, *values in lines}


def test_the_page_counts_in_how_many_columns_each_method_is_worse() -> None:
    counted = {}
    for name, rows in cells_of(EXTENDED).items():
        worse = Counter(row["benchmark"] for row in rows if row["not_worse"] == "False")
        counted[name] = [str(worse[benchmark]) for benchmark in BENCHMARKS]
    assert table_after(PAGE, "## Who wins where") == counted


def test_the_page_counts_on_how_many_classifiers_no_method_is_better() -> None:
    counted = {}
    for name, rows in cells_of(TABLES).items():
        fine = Counter(row["metric"] for row in rows if row["not_worse"] == "True")
        counted[name] = [str(fine[metric]) for metric in PURPOSES]
    assert table_after(CHOOSING, "## By purpose") == counted


def test_the_readme_shows_the_committed_leaderboard() -> None:
    table = (TABLES / "leaderboard.md").read_text(encoding="utf-8").partition("\n\n")[0]
    assert table in README.read_text(encoding="utf-8")
