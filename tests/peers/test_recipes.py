"""The recipes of docs/recipes.md run with the real packages and print what the page shows."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks, run
from tests.peers.conftest import package
from tests.printed import check_printed

RECIPES = ROOT / "docs" / "recipes.md"
FIRST, *REST = [block for block in blocks(RECIPES) if block.language == "python"]
PACKAGES = ("lightning", "torchmetrics", "mlflow", "datasets", "onnxscript", "onnxruntime")


def ran(text: str) -> tuple[dict[str, Any], str]:
    """The names that a recipe leaves after the page's first block, and what it prints."""
    for name in PACKAGES:
        # torch.onnx.export, too, needs onnxscript, without naming it.
        if name in text or (name == "onnxscript" and "onnx" in text):
            package(name)
    names: dict[str, Any] = {"__name__": "recipes"}
    run(FIRST.text, RECIPES, names)
    return names, run(text, RECIPES, names)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recipes write into a folder of the test, and let nothing be sent anywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # databases need the whole of MLflow


@pytest.mark.parametrize("recipe", REST, ids=[block.text.split()[1] for block in REST])
def test_a_recipe_prints_what_is_shown_under_it(recipe) -> None:
    check_printed(ran(recipe.text)[1], recipe.output)


def test_mlflow_has_the_scorecard_and_the_diagram_after_its_recipe() -> None:
    mlflow = package("mlflow")
    names, _ = ran(next(block.text for block in REST if "mlflow" in block.text))
    kept, card = mlflow.last_active_run(), names["card"]
    assert kept.data.metrics == pytest.approx(card.to_dict())
    table = mlflow.artifacts.load_dict(f"{kept.info.artifact_uri}/calibration.json")
    assert table == {"metrics": card.metrics, "numbers": card.to_dict()}
    assert mlflow.artifacts.load_image(f"{kept.info.artifact_uri}/topk.png").size > (100, 100)
