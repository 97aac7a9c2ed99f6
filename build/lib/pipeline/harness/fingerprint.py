"""Whether a result is still the result: a digest of the code that made it.

A module's digest covers its syntax tree without docstrings, and with it comments and layout, and
that of every module of this repository that it imports, directly or through others. Package
`__init__` files only pass names on: `from metrics import Rank` counts as the module that defines
`Rank`, so editing a metric touches no calibrator that does not use it (`import metrics` counts as
all of it). Nothing is imported here; the source is read.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("pipeline", "calibrators", "metrics")
WITHOUT_EFFECT = {"metrics.validation"}
"""Checks pass a value on or refuse it: rewording an error makes no result stale."""


class UnknownTarget(LookupError):
    """A dotted name that leads to no source file. One line."""


def source_fingerprint(*targets: str) -> str:
    """SHA-256 over the modules behind `targets` and their imports.

    A target is a module (`metrics.scorecard`) or a name in one (`calibrators.TemperatureScaling`).
    Modules outside this repository (NumPy, SciPy) do not count; of a user's own package all that
    the target imports from that package does.
    """
    packages = {*PACKAGES, *(target.partition(".")[0] for target in targets)}
    digest = hashlib.sha256()
    for module in sorted(_closure(targets, packages)):
        digest.update(f"{module}:{_digest(_location(module))}\n".encode())
    return digest.hexdigest()


def imported_modules(*targets: str) -> list[str]:
    """The modules that `source_fingerprint(*targets)` covers, sorted."""
    packages = {*PACKAGES, *(target.partition(".")[0] for target in targets)}
    return sorted(_closure(targets, packages))


def _closure(targets: tuple[str, ...], packages: set[str]) -> set[str]:
    found: set[str] = set()
    waiting = [_defining_module(target) for target in targets]
    while waiting:
        module = waiting.pop()
        if module in found or module in WITHOUT_EFFECT:
            continue
        found.add(module)
        waiting.extend(_imports(module, packages) - found)
    return found


def _imports(module: str, packages: set[str]) -> set[str]:
    """Modules of `packages` that `module` imports anywhere, also inside functions."""
    return {
        _defining_module(name)
        for name in _imported_names(module)
        if name.partition(".")[0] in packages
    }


def _imported_names(module: str) -> Iterator[str]:
    for node in ast.walk(_tree(_location(module))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base_of(node, module)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _base_of(node: ast.ImportFrom, module: str) -> str:
    """The absolute module that a `from ... import` names, relative dots resolved."""
    if not node.level:
        return node.module or ""
    parents = module.split(".")
    if not _is_package(module):
        parents = parents[:-1]
    kept = parents[: len(parents) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _defining_module(target: str) -> str:
    """The module in which `target` (a module, or a name in a module or package) is written."""
    if _is_module(target):
        return target
    owner, _, name = target.rpartition(".")
    if not owner or not _is_module(owner):
        outer = owner.rpartition(".")[0]
        if outer and _is_module(outer):
            return _defining_module(owner)  # an attribute of a class, such as Rank.sample
        raise UnknownTarget(f"{target}: no such module or name; check `_target_`")
    if not _is_package(owner):
        return owner
    for node in ast.walk(_tree(_location(owner))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _defining_module(f"{_base_of(node, owner)}.{alias.name}")
        elif name in (getattr(node, "name", None), getattr(node, "id", None)):
            return owner  # a class, function or variable of the package itself
    raise UnknownTarget(f"{target}: {owner} has no such name; check `_target_`")


def _is_module(name: str) -> bool:
    return _find(name) is not None


def _is_package(name: str) -> bool:
    location = _find(name)
    return location is not None and location.name == "__init__.py"


def _location(name: str) -> Path:
    location = _find(name)
    if location is None:
        raise UnknownTarget(f"{name}: no such module; check `_target_`")
    return location


@cache
def _find(name: str) -> Path | None:
    """The source file of module `name`, found from its top package without importing it."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    location = Path(spec.origin)
    if not rest:
        return location
    if location.name != "__init__.py":
        return None
    inside = location.parent.joinpath(*rest)
    candidates = (inside.with_name(inside.name + ".py"), inside / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@cache
def _tree(location: Path) -> ast.Module:
    return ast.parse(location.read_text(encoding="utf-8"))


@cache
def _digest(location: Path) -> str:
    """SHA-256 of a file's syntax tree without docstrings, comments and layout."""
    tree = ast.parse(location.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [statement for statement in body if not _is_bare_string(statement)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_bare_string(statement: ast.stmt) -> bool:
    """A docstring, also one below an attribute: an expression that only states a string."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
