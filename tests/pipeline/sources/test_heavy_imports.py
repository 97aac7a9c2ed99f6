"""Optional libraries: past the torchvision trap, and a line when one is absent."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest

from pipeline.sources import heavy_imports
from pipeline.sources.heavy_imports import MISSING_OPERATOR, require
from pipeline.sources.result import MissingResource


def fake_imports(monkeypatch: pytest.MonkeyPatch, *answers: Exception | None) -> list[str]:
    """Make `import torchvision` answer in turn; returns the list of schemas that get defined."""
    remaining, defined = list(answers), []

    def answer(name: str) -> ModuleType:
        outcome = remaining.pop(0) if remaining else None
        if outcome is not None:
            raise outcome
        return ModuleType(name)

    class Library:
        def __init__(self, *arguments: Any) -> None: ...

        def define(self, schema: str) -> None:
            defined.append(schema)

    monkeypatch.setattr(importlib, "import_module", answer)
    monkeypatch.setattr(heavy_imports.torch.library, "Library", Library)
    monkeypatch.setattr(heavy_imports, "_defined", [])
    return defined


def test_the_trap_is_passed_by_defining_the_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    defined = fake_imports(monkeypatch, RuntimeError(MISSING_OPERATOR))
    monkeypatch.setitem(sys.modules, "torchvision.half_imported", ModuleType("half"))
    saved = {name: module for name, module in sys.modules.items() if "torchvision" in name}
    try:
        require("timm")
        assert "torchvision.half_imported" not in sys.modules
    finally:
        sys.modules.update(saved)
    assert [schema.partition("(")[0] for schema in defined] == ["nms", "qnms"]


def test_other_failures_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    defined = fake_imports(monkeypatch, RuntimeError("CUDA driver too old"))
    with pytest.raises(RuntimeError, match="CUDA driver too old"):
        require("torchvision")
    assert defined == []


def test_an_absent_package_is_one_line_with_the_command() -> None:
    with pytest.raises(MissingResource, match=r"^the package not_there is not installed: pip ins"):
        require("not_there.inside")
