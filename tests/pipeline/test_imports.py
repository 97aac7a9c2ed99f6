"""Imports point one way and make no circle."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from pipeline.harness.command import CONF

ROOT = CONF.parent
LEVELS = ("metrics.kernels", "metrics", "calibrators", "pipeline.harness", "pipeline", "scripts")
"""Each may import itself and what is before it."""


@cache
def modules() -> dict[str, Path]:
    """Every file of the program by its module's name."""
    folders = ("metrics", "calibrators", "pipeline", "scripts")
    found = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str) -> set[str]:
    """The modules of this repository that `module` imports, those inside functions, too.

    What only type checkers read counts, except where a package's names are imported on demand.
    """
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    for node in tree.body if modules()[module].name == "__init__.py" else ():
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    package = module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    nearest = {name if name in modules() else name.rpartition(".")[0] for name in names}
    return (nearest & modules().keys()) - {module}


def level_of(module: str) -> int:
    inside = [k for k, name in enumerate(LEVELS) if f"{module}.".startswith(f"{name}.")]
    return min(inside)


def test_imports_point_one_way():
    upward = [
        f"{module} imports {other}"
        for module in modules()
        for other in imported(module)
        if level_of(other) > level_of(module)
    ]
    assert upward == []


@pytest.mark.parametrize("package", ["metrics", "calibrators", "pipeline", "scripts"])
def test_there_is_no_circle(package):
    inside = {module for module in modules() if f"{module}.".startswith(f"{package}.")}
    graph = {module: imported(module) & inside for module in inside}
    order = list(TopologicalSorter(graph).static_order())  # CycleError names the circle
    assert len(order) >= len(graph) > 3
