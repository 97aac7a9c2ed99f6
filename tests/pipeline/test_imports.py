"""Imports point one way and make no circle."""

import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from utility_calibration import calibrators, metrics
from utility_calibration.metrics import plots
from utility_calibration.pipeline import own
from utility_calibration.pipeline.harness import code_digest as code
from utility_calibration.pipeline.harness.parameters import CONF

ROOT = CONF.parent
OURS = "utility_calibration."
PACKAGES = {"metrics": metrics, "calibrators": calibrators, "metrics.plots": plots}
LEVELS = (
    *("metrics.errors", "metrics.arrays", "metrics.kernels", "metrics"),
    *("calibrators", "pipeline.harness", "pipeline", "scripts"),
)
"""Each may import itself and what is before it."""
ROOMS = (
    *("words", "reading", "rows", "columns", "points", "request"),
    *("applying", "streaming", "running"),
)
"""The rooms of pipeline/own, in the order of its docstring: each imports what is before it."""


@cache
def modules() -> dict[str, Path]:
    """Every file of the program by its module's name."""
    folders = ("metrics", "calibrators", "pipeline", "scripts")
    found = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[OURS + ".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str) -> set[str]:
    """The modules of this repository that `module` imports, also inside functions and for types."""
    names = {name for _, name in code._read(module, modules()[module])[1]}
    nearest = {name if name in modules() else name.rpartition(".")[0] for name in names}
    return (nearest & modules().keys()) - {module}


def level_of(module: str) -> int:
    inside = [k for k, name in enumerate(LEVELS) if f"{module}.".startswith(f"{OURS}{name}.")]
    return min(inside)


def test_imports_point_one_way():
    upward = [
        f"{module} imports {other}"
        for module in modules()
        if level_of(module) < LEVELS.index("scripts")
        for other in imported(module)
        if level_of(other) > level_of(module)
    ]
    assert upward == []


def room_of(module: str) -> str | None:
    """The room of pipeline/own in which a module is; None: it is in none of them."""
    inside = module.removeprefix(f"{OURS}pipeline.own.")
    return None if inside == module else inside.partition(".")[0]


def test_rooms_for_a_persons_file_import_one_way():
    assert {room_of(module) for module in modules()} == {None, *ROOMS}
    upward = []
    for module in modules():
        room = room_of(module)
        above = ROOMS[ROOMS.index(room) + 1 :] if room else ()
        upward += [
            f"{module} imports {name}" for name in imported(module) if room_of(name) in above
        ]
    assert upward == []


def test_the_docstring_has_the_rooms_in_their_order():
    said = own.__doc__.partition("Words:")[0]
    assert tuple(re.findall(r"^ {4}(\w+) {2,}\S", said, re.MULTILINE)) == ROOMS


def test_no_import_waits_for_the_lock_of_first_uses():
    listed = {f"{OURS}{place}.{name}" for place, of in PACKAGES.items() for name in of.__all__}
    for module, path in modules().items():
        if level_of(module) <= LEVELS.index("calibrators"):
            names = {name for _, name in code._read(module, path)[1]}
            assert not listed & names - {*modules()}, module


@pytest.mark.parametrize("package", ["metrics", "calibrators", "pipeline"])
def test_there_is_no_circle(package):
    inside = {module for module in modules() if f"{module}.".startswith(f"{OURS}{package}.")}
    graph = {module: imported(module) & inside for module in inside}
    order = list(TopologicalSorter(graph).static_order())  # CycleError names the circle
    assert len(order) >= len(graph) > 3
