"""The pages' blocks of Python run and print what the page shows, and their commands run.

The recipes run with a stand-in for MLflow.
"""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.docs.pages import PAGES, README, ROOT, blocks, name_of
from tests.printed import check_printed
from utility_calibration.calibrators.heavy_imports import require

TUTORIAL = ROOT / "docs" / "tutorial.md"
YOUR_DATA = ROOT / "docs" / "your-data.md"
RESULTS = ROOT / "results" / "README.md"  # its block reads files of the repository
FEWER = ["--splits", "2", "--methods", "uncalibrated", "temperature", "logit_shift"]
"""To spare time: the page's commands use ten splits and all methods."""
PROGRAMS = ("score", "apply")
RECIPES = ROOT / "docs" / "recipes.md"
FIRST, *RECIPE = [block for block in blocks(RECIPES) if block.language == "python"]
WITH_PYTHON = [p for p in PAGES if p != RECIPES and any(b.language == "python" for b in blocks(p))]


def run(text: str, page: Path, names: dict[str, object] | None = None) -> str:
    """Run a block of Python, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(text, str(page), "exec"), {"__name__": page.stem} if names is None else names)
    return output.getvalue()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's first block has run, which makes the file my.npz."""
    folder = tmp_path_factory.mktemp("reader")
    with contextlib.chdir(folder):
        run(next(b.text for b in blocks(README) if b.language == "python"), README)
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
    names: dict[str, object] = {"__name__": page.stem}
    with contextlib.chdir(ROOT if page == RESULTS else reader):
        pairs = [
            (run(block.text, page, names), block.output)
            for block in blocks(page)
            if block.language == "python"
        ]
    for printed, shown in pairs:
        check_printed(printed, shown)


@pytest.mark.parametrize("recipe", RECIPE, ids=[block.text.split()[1] for block in RECIPE])
def test_a_recipe_prints_what_is_shown_under_it(recipe, tmp_path, monkeypatch) -> None:
    for package in ("torchmetrics", "datasets", "onnxscript"):
        if re.search(rf"(from|import) \S*{package}", recipe.text.replace("runtime", "script")):
            if package == "torchmetrics":
                require("torchvision")  # torchmetrics imports it; its own way may fail
            pytest.importorskip(package, reason=f"the recipe uses {package}, not installed")
    logged = {}
    mlflow = SimpleNamespace(start_run=contextlib.nullcontext)
    for name in ("log_metrics", "log_dict", "log_figure"):
        setattr(mlflow, name, lambda *given, name=name: logged.update({name: given}))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "recipes"}
    run(FIRST.text, RECIPES, names)
    check_printed(run(recipe.text, RECIPES, names), recipe.output)
    if "mlflow" in recipe.text:
        assert list(logged) == ["log_metrics", "log_dict", "log_figure"]
        assert all(np.isfinite(value) for value in logged["log_metrics"][0].values())


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, YOUR_DATA], ids=name_of)
def test_the_commands_for_a_file_of_ones_own_run(page: Path, tmp_path: Path) -> None:
    ran = 0
    for block in blocks(page):
        makes_a_file = "savez" in block.text or "write_text" in block.text
        if block.language == "python" and makes_a_file:
            with contextlib.chdir(tmp_path):
                run(block.text, page)
        for line in block.text.splitlines() if block.language == "bash" else ():
            words = shlex.split(line, comments=True)
            if words[:1] == ["utility-calibration"] and words[1] in PROGRAMS:
                command = [sys.executable, "-m", "utility_calibration", *words[1:]]
                command += FEWER if "score" in words[1] else []
                done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
                ran += 1
    assert ran >= 3
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "calibrated.npz").is_file()
