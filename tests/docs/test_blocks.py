"""The pages' blocks of Python run, print what the page shows under them, and draw its figures."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README, ROOT, Block, blocks, name_of

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
RELATIVE, ABSOLUTE = 0.05, 0.003
"""How far a number may lie from the printed one: solvers end an ulp apart on other machines."""
TUTORIAL = ROOT / "docs" / "tutorial.md"
WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


def run_blocks(page: Path, folder: Path) -> list[tuple[str, str]]:
    """Run the page's Python in a folder: pairs of the output shown and the output printed."""
    names: dict[str, object] = {"__name__": page.stem}
    printed = []
    with contextlib.chdir(folder):
        for block in blocks(page):
            if block.language == "python":
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(block.text, str(page), "exec"), names)
                printed.append((block.output, output.getvalue()))
    return printed


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's first block has run, which makes the file my.npz."""
    folder = tmp_path_factory.mktemp("reader")
    first = next(block for block in blocks(README) if block.language == "python")
    with contextlib.chdir(folder):
        exec(compile(first.text, str(README), "exec"), {"__name__": "readme"})
    return folder


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page == TUTORIAL else [], id=name_of(page))
        for page in [README, *WITH_PYTHON]
    ],
)
def test_every_block_prints_what_stands_under_it(page: Path, reader: Path) -> None:
    for package in ("matplotlib", *(("onnxscript", "onnxruntime") if page == TUTORIAL else ())):
        pytest.importorskip(package, reason=f"the page uses {package}, which is not installed")
    for shown, printed in run_blocks(page, reader):
        assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (printed, shown)]
        assert numbers[0] == pytest.approx(numbers[1], rel=RELATIVE, abs=ABSOLUTE), printed


def test_the_tutorial_shows_output_under_most_of_its_blocks() -> None:
    shown = [block.output for block in blocks(TUTORIAL) if block.language == "python"]
    assert sum(map(bool, shown)) >= 10


def test_blocks_belong_to_a_known_language() -> None:
    unknown = [
        Block(block.language, block.text, "")
        for page in [README, *PAGES]
        for block in blocks(page)
        if block.language not in ("python", "bash", "text", "bibtex")
    ]
    assert unknown == []
