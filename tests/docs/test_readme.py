"""The README and the pages: their lengths, links, and the tables that they quote from results."""

import csv
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import PAGES, README, ROOT, blocks, links, name_of
from tests.printed import check_printed
from utility_calibration.pipeline.reporting.names import method_name

VERDICT = ROOT / "results" / "tables" / "cifar100_resnet_verdict.json"
TUTORIAL = ROOT / "docs" / "tutorial.md"
NOTEBOOK = TUTORIAL.with_suffix(".ipynb")
LONGER = {name_of(TUTORIAL)}
"""Pages that may have more lines than the others: a tutorial is read with its code."""


def test_the_readme_has_at_most_150_lines_and_1200_words() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1200


def test_the_first_ten_lines_say_whose_implementation_this_is() -> None:
    first = " ".join(README.read_text(encoding="utf-8").splitlines()[:10])
    for words in ("independent implementation", "2510.25458", "authors' repository"):
        assert words in first


def test_the_answer_on_the_first_screen_is_the_committed_one() -> None:
    verdict = json.loads(VERDICT.read_text(encoding="utf-8"))
    assert f"> {verdict['headline']}\n" in README.read_text(encoding="utf-8")


def test_no_line_of_the_readmes_code_is_cut_at_the_edge_of_a_page() -> None:
    assert max(len(line) for block in blocks(README) for line in block.text.splitlines()) <= 90


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_readme_links_every_page_once(page) -> None:
    assert links(README).count(name_of(page)) == 1


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_answers_one_question_in_at_most_150_lines(page) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    if name_of(page) not in LONGER:
        assert len(lines) <= 150
        assert lines[0].endswith("?")


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_every_relative_link_leads_to_a_file(page) -> None:
    for link in links(page):
        if not link.startswith(("http://", "https://", "#")):
            assert (page.parent / link.split("#")[0]).is_file(), link


def entries_of(part: Any) -> Iterator[str]:
    """The files that a part of docs/_toc.yml names."""
    if isinstance(part, list):
        for each in part:
            yield from entries_of(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("root", "file"):
                yield str(value)
            else:
                yield from entries_of(value)


def test_the_sidebar_has_every_page_and_the_reference() -> None:
    contents = yaml.safe_load((ROOT / "docs" / "_toc.yml").read_text(encoding="utf-8"))
    named = set(entries_of(contents))
    assert {page.relative_to(ROOT).with_suffix("").as_posix() for page in PAGES} <= named
    assert {"docs/api/metrics", "docs/api/calibrators"} <= named


@pytest.mark.slow
def test_the_site_has_every_page_and_the_public_names(tmp_path: Path) -> None:
    """`make docs`, which CI runs, itself fails at a link that leads nowhere."""
    for package in ("furo", "myst_parser", "sphinx_external_toc", "jupytext"):
        pytest.importorskip(package, reason=f"{package}, of the extra `docs`, is not installed")
    command = ["make", "--old-file=setup", "docs", f"VENV={sys.prefix}", f"SITE={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in PAGES:
        assert (tmp_path / page.relative_to(ROOT).with_suffix(".html")).is_file()
    for package, name in (("metrics", "TopK"), ("calibrators", "LogitShiftPatching")):
        reference = (tmp_path / "docs" / "api" / f"{package}.html").read_text(encoding="utf-8")
        assert f'id="utility_calibration.{package}.{name}"' in reference
    assert (tmp_path / "docs" / "tutorial.ipynb").is_file()
    assert 'href="tutorial.ipynb"' in (tmp_path / "docs" / "tutorial.html").read_text("utf-8")


def test_the_notebook_has_the_tutorials_code_and_its_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    shown = [block for block in blocks(TUTORIAL) if block.language == "python"]
    assert ["".join(cell["source"]) for cell in code] == [block.text.rstrip() for block in shown]
    for cell, block in zip(code, shown, strict=True):
        printed = ["".join(part["text"]) for part in cell["outputs"] if "text" in part]
        check_printed("".join(printed), block.output)
    pictures = [
        part for cell in code for part in cell["outputs"] if "image/png" in part.get("data", ())
    ]
    assert len(pictures) == TUTORIAL.read_text(encoding="utf-8").count("](figures/")


PEERS = ROOT / "docs" / "methods" / "peers.md"
CHOOSING = ROOT / "docs" / "choosing.md"
PURPOSES = ("u_cwe", "u_topk", "u_dcg", "u_rank_q95", "nll")
TABLES = ROOT / "results" / "tables"
EXTENDED = ROOT / "results" / "extended" / "tables"
CIFAR10 = ("cifar10_repvgg", "cifar10_resnet", "cifar10_resnet44")
BENCHMARKS = (*CIFAR10, "cifar100_repvgg", "cifar100_resnet")


def cells_of(tables: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of all benchmarks' CSV files, by the name of the method."""
    rows_of: dict[str, list[dict[str, str]]] = defaultdict(list)
    for benchmark in BENCHMARKS:
        with (tables / f"{benchmark}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                name = method_name(row["method"]).removesuffix(" (probmetrics)")
                rows_of[name].append({**row, "benchmark": benchmark})
    return rows_of


def table_after(page: Path, heading: str) -> dict[str, list[str]]:
    """The first table under a heading: the cells of each line, by its first one."""
    text = page.read_text(encoding="utf-8").split(heading)[1]
    block = re.search(r"(?:^.*\|.*\n)+", text, re.MULTILINE)
    assert block is not None
    lines = [line.strip("| ").split(" | ") for line in block[0].splitlines()[2:]]
    return {name: values for name, *values in lines}


@pytest.mark.parametrize(
    ("page", "heading", "tables", "not_worse", "by", "columns"),
    [
        (PEERS, "## Who wins where", EXTENDED, "False", "benchmark", BENCHMARKS),
        (CHOOSING, "## By purpose", TABLES, "True", "metric", PURPOSES),
    ],
)
def test_a_page_counts_how_often_methods_are_worse_or_not(
    page, heading, tables, not_worse, by, columns
) -> None:
    counted = {}
    for name, rows in cells_of(tables).items():
        counts = Counter(row[by] for row in rows if row["not_worse"] == not_worse)
        counted[name] = [str(counts[column]) for column in columns]
    assert table_after(page, heading) == counted


def test_the_readme_counts_the_lost_cells_of_the_committed_leaderboard() -> None:
    with (TABLES / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        first, second, *_ = csv.DictReader(file)
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert f"best method in {first['worse']} of {first['cells']} comparisons" in text
    assert f"the next one in {second['worse']} (" in text
