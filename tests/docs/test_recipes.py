"""The recipes run and print what the page shows, with a stand-in for MLflow."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calibrators.heavy_imports import require
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.test_blocks import ABSOLUTE, NUMBER, RELATIVE

PAGE = blocks(ROOT / "docs" / "recipes.md")
FIRST, *RECIPES = [block for block in PAGE if block.language == "python"]
NEEDED = ("torchmetrics", "datasets", "onnxscript")
MLFLOW: list[tuple[str, Any]] = []
STAND_IN = SimpleNamespace(
    start_run=contextlib.nullcontext,
    **{
        name: lambda *given, name=name: MLFLOW.append((name, given))
        for name in ("log_metrics", "log_dict", "log_figure")
    },
)


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    """What the page's first block defines."""
    names: dict[str, object] = {"__name__": "recipes"}
    exec(FIRST.text, names)
    return names


@pytest.mark.parametrize("recipe", RECIPES, ids=[block.text.split()[1] for block in RECIPES])
def test_a_recipe_prints_what_is_shown_under_it(
    recipe: Block, names: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in NEEDED:
        if re.search(rf"(from|import) \S*{package}", recipe.text.replace("runtime", "script")):
            if package == "torchmetrics":
                require("torchvision")  # torchmetrics imports it; its own way may fail
            pytest.importorskip(package, reason=f"the recipe uses {package}, not installed")
    monkeypatch.setitem(sys.modules, "mlflow", STAND_IN)
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(recipe.text, "recipes.md", "exec"), dict(names))
    shown, found = recipe.output, printed.getvalue()
    assert NUMBER.sub("#", found).split() == NUMBER.sub("#", shown).split()
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (found, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=RELATIVE, abs=ABSOLUTE), found
    if "mlflow" in recipe.text:
        assert [name for name, _ in MLFLOW] == ["log_metrics", "log_dict", "log_figure"]
        assert all(np.isfinite(value) for value in MLFLOW[0][1][0].values())
