"""The pages' blocks of Python run and print what the page shows, and their commands run.

The recipes, which need other packages, are in tests/peers/test_recipes.py.
"""

import contextlib
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.docs.pages import PAGES, README, ROOT, blocks, name_of, run
from tests.printed import check_printed
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.scripts import score

TUTORIAL = ROOT / "docs" / "tutorial.md"
EXTENDING = ROOT / "docs" / "extending.md"
YOUR_DATA = ROOT / "docs" / "your-data.md"
STREAMING = ROOT / "docs" / "streaming.md"
RESULTS = ROOT / "results" / "README.md"  # its block reads files of the repository
FEWER = ["--splits", "2", "--methods", "uncalibrated", "temperature", "logit_shift"]
"""To spare time: the page's commands use ten splits and all methods."""
PROGRAMS = ("score", "apply")
RECIPES = ROOT / "docs" / "recipes.md"
WITH_PYTHON = [p for p in PAGES if p != RECIPES and any(b.language == "python" for b in blocks(p))]


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


def test_the_commands_of_the_page_on_streams_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": STREAMING.stem}
    for block in blocks(STREAMING):
        if block.language == "python":
            run(block.text, STREAMING, names)
    commands = [shlex.split(command) for block in blocks(STREAMING) for command in block.commands]
    for _, _, *arguments in commands:
        score.score(score.parse(arguments))
    (calibrated,) = read_json(tmp_path / "calibrated/streaming.json").values()
    (forecast,) = read_json(tmp_path / "out/streaming.json").values()
    assert (forecast["n"], calibrated["n"]) == (3000, 2700)
    assert calibrated["nll"] < forecast["nll"]


@pytest.mark.parametrize("page", [README, EXTENDING], ids=name_of)
def test_a_calibrator_of_ones_own_is_made_from_its_file_of_settings(page: Path) -> None:
    """The class of the page's block of Python, with the settings of its block of YAML."""
    code = next(b.text for b in blocks(page) if "(Calibrator)" in b.text)
    (settings,) = (yaml.safe_load(b.text) for b in blocks(page) if b.language == "yaml")
    module, name = settings.pop("_target_").split(".")
    names: dict[str, Any] = {"__name__": module, "np": np}
    run(code, page, names)
    calibrator = names[name](**settings).fit([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])
    assert calibrator.get_params().items() >= settings.items()
    assert calibrator.predict_proba([[2.0, 0.0]]).sum() == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, YOUR_DATA], ids=name_of)
def test_the_commands_for_a_file_of_ones_own_run(page: Path, tmp_path: Path) -> None:
    ran = 0
    for block in blocks(page):
        makes_a_file = "savez" in block.text or "write_text" in block.text
        if block.language == "python" and makes_a_file:
            with contextlib.chdir(tmp_path):
                run(block.text, page)
        for typed in block.commands:
            words = shlex.split(typed, comments=True)
            if words[:1] == ["utility-calibration"] and words[1] in PROGRAMS:
                command = [sys.executable, "-m", "utility_calibration", *words[1:]]
                command += FEWER if "score" in words[1] else []
                done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
                ran += 1
    assert ran >= 3
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "calibrated.npz").is_file()
