"""The page on other packages' methods counts what the committed tables say."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from pipeline.reporting.names import method_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extended.md"
TABLES = ROOT / "results" / "extended" / "tables"
BENCHMARKS = (
    "cifar10_repvgg",
    "cifar10_resnet",
    "cifar10_resnet44",
    "cifar100_repvgg",
    "cifar100_resnet",
)


def worse_columns() -> dict[str, list[int]]:
    """Of each method, on each benchmark, the number of columns in which it is not bold."""
    worse: Counter[tuple[str, str]] = Counter()
    methods: dict[str, None] = {}
    for benchmark in BENCHMARKS:
        with (TABLES / f"{benchmark}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                name = method_name(row["method"]).removesuffix(" (probmetrics)")
                methods[name] = None
                worse[name, benchmark] += row["not_worse"] == "False"
    return {name: [worse[name, benchmark] for benchmark in BENCHMARKS] for name in methods}


def test_the_page_counts_in_how_many_columns_each_method_is_worse():
    page = PAGE.read_text(encoding="utf-8").split("## Who wins where")[1].split("- **")[0]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert {name: list(map(int, counts)) for name, *counts in rows[1:]} == worse_columns()
