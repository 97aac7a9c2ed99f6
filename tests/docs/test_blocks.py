"""The pages' blocks of Python run and print what the page shows, and their commands run."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README, ROOT, blocks, name_of

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
RELATIVE, ABSOLUTE = 0.05, 0.003
"""How far a number may lie from the printed one: solvers end an ulp apart on other machines."""
TUTORIAL = ROOT / "docs" / "tutorial.md"
YOUR_DATA = ROOT / "docs" / "your-data.md"
RESULTS = ROOT / "results" / "README.md"  # its block reads files of the repository
FEWER = ["--splits", "2", "--methods", "uncalibrated", "temperature", "logit_shift"]
"""To spare time: the page's commands use ten splits and all methods."""
SCRIPTS = ("scripts/score.py", "scripts/apply.py")
RECIPES = ROOT / "docs" / "recipes.md"  # test_recipes.py runs it
WITH_PYTHON = [
    page
    for page in PAGES
    if page != RECIPES and any(block.language == "python" for block in blocks(page))
]


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
        for page in [README, RESULTS, *WITH_PYTHON]
    ],
)
def test_every_block_prints_what_is_shown_under_it(page: Path, reader: Path) -> None:
    for package in ("matplotlib", *(("onnxscript", "onnxruntime") if page == TUTORIAL else ())):
        pytest.importorskip(package, reason=f"the page uses {package}, which is not installed")
    for shown, printed in run_blocks(page, ROOT if page == RESULTS else reader):
        assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (printed, shown)]
        assert numbers[0] == pytest.approx(numbers[1], rel=RELATIVE, abs=ABSOLUTE), printed


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, YOUR_DATA], ids=name_of)
def test_the_commands_for_a_file_of_ones_own_run(page: Path, tmp_path: Path) -> None:
    ran = 0
    for block in blocks(page):
        makes_a_file = "savez" in block.text or "write_text" in block.text
        if block.language == "python" and makes_a_file:
            with contextlib.chdir(tmp_path):
                exec(compile(block.text, str(page), "exec"), {"__name__": page.stem})
        for line in block.text.splitlines() if block.language == "bash" else ():
            words = shlex.split(line, comments=True)
            if words[:1] == ["python"] and words[1] in SCRIPTS:
                command = [sys.executable, str(ROOT / words[1]), *words[2:]]
                command += FEWER if "score" in words[1] else []
                done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
                ran += 1
    assert ran >= 3
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "calibrated.npz").is_file()
