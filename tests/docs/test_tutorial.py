"""The tutorial says what happens: its blocks run, print what it shows, and draw its figures."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
RELATIVE, ABSOLUTE = 0.05, 0.003
"""How far a number may lie from the printed one: solvers end an ulp apart on other machines."""


class Ran(NamedTuple):
    """What the page's blocks printed: pairs of the text in the page and the real one."""

    printed: list[tuple[str, str]]
    folder: Path


def blocks(page: str) -> list[tuple[str, str]]:
    """The code of each block and the output under it, empty where the page shows none."""
    fenced = [(kind, text) for kind, text in FENCED.findall(page) if kind in ("python", "text")]
    following = [*fenced[1:], ("", "")]
    return [
        (text, after if kind_after == "text" else "")
        for (kind, text), (kind_after, after) in zip(fenced, following, strict=True)
        if kind == "python"
    ]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    for package in ("matplotlib", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package}, which the tutorial uses, is missing")
    folder, names, printed = tmp_path_factory.mktemp("reader"), {"__name__": "tutorial"}, []
    with contextlib.chdir(folder):
        for code, shown in blocks(PAGE.read_text()):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, str(PAGE), "exec"), names)
            printed.append((shown, output.getvalue()))
    return Ran(printed, folder)


def test_every_block_prints_the_words_that_stand_under_it(ran: Ran) -> None:
    for shown, printed in ran.printed:
        assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()


def test_every_number_is_the_printed_one_within_the_tolerance(ran: Ran) -> None:
    for shown, printed in ran.printed:
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (printed, shown)]
        assert numbers[0] == pytest.approx(numbers[1], rel=RELATIVE, abs=ABSOLUTE), printed


def test_the_blocks_draw_the_figures_of_the_page(ran: Ran) -> None:
    named = FIGURE.findall(PAGE.read_text())
    assert named
    for name in named:
        for folder in (ran.folder, PAGE.parent):
            assert (folder / name).read_bytes().startswith(b"\x89PNG"), folder / name


def test_the_page_shows_output_under_most_of_its_blocks() -> None:
    shown = [output for _, output in blocks(PAGE.read_text())]
    assert sum(map(bool, shown)) >= 10
