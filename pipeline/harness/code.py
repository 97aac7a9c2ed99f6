"""The version of the code behind a result: a digest of every file that computes it.

A target is a module, or a name in one, such as a `_target_` of a configuration. Its file counts,
and so does each file of this repository that it imports, at any depth. Comments and docstrings do
not count, and neither does `pipeline.harness`, which decides when a unit is computed, not how.
Nothing is imported here; the source is read.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("pipeline", "calibrators", "metrics")
NOT_COUNTED = "pipeline.harness"


class UnknownTarget(LookupError):
    """A dotted name that leads to no source file. One line."""


@cache
def code_digest(*targets: str) -> str:
    """SHA-256 over the files behind `targets` and all that they import.

    Files of a user's own package that the target imports from that package count, too. Installed
    packages do not count.

    Raises:
        UnknownTarget: a target's module does not exist.
    """
    sources = {target: "installed" for target in targets if _is_installed(target)}
    waiting = [_module_of(target) for target in targets if target not in sources]
    packages = {*PACKAGES, *(module.partition(".")[0] for module in waiting)}
    while waiting:
        module = waiting.pop()
        if module in sources or module.startswith(NOT_COUNTED):
            continue
        tree = _tree(module)
        sources[module] = ast.dump(tree)
        names = (name for bound in _imports(module, tree).values() for name in bound)
        waiting += [_module_of(name) for name in names if name.partition(".")[0] in packages]
    return hashlib.sha256(json.dumps(sorted(sources.items())).encode()).hexdigest()


def targets_in(settings: Any) -> Iterator[str]:
    """Every `_target_` of a configuration, also of what is nested in it."""
    if isinstance(settings, Mapping):
        if "_target_" in settings:
            yield str(settings["_target_"])
        settings = list(settings.values())
    if isinstance(settings, list):
        for value in settings:
            yield from targets_in(value)


def _is_installed(target: str) -> bool:
    spec = importlib.util.find_spec(target.partition(".")[0])
    return spec is not None and "site-packages" in (spec.origin or "")


@cache
def _module_of(name: str) -> str:
    """The module that defines `name`; a package that only passes a name on does not count."""
    if _file(name) is not None:
        return name
    owner, _, attribute = name.rpartition(".")
    if not owner:
        raise UnknownTarget(f"{name}: no such module or name; check `_target_`")
    if _file(owner) is None:
        return _module_of(owner)
    # Packages name what they pass on for type checkers, and import it when it is asked for.
    passed_on = _imports(owner, _parsed(owner)).get(attribute)
    return _module_of(passed_on[0]) if passed_on else owner


def _parsed(module: str) -> ast.Module:
    path = _file(module)
    assert path is not None
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _tree(module: str) -> ast.Module:
    """A module's syntax tree without docstrings and without what only type checkers read."""
    tree = _parsed(module)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_left_out(line)]  # type: ignore[attr-defined]
    return tree


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def _imports(module: str, tree: ast.Module) -> dict[str, list[str]]:
    """The names that the imports in `tree` bind, and the dotted names that they stand for."""
    path = _file(module)
    is_package = path is not None and path.name == "__init__.py"
    package = module.split(".") if is_package else module.split(".")[:-1]
    bound: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound.setdefault(alias.asname or alias.name, []).append(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                target = base if alias.name == "*" else f"{base}.{alias.name}"
                bound.setdefault(alias.asname or alias.name, []).append(target)
    return bound


@cache
def _file(name: str) -> Path | None:
    """The source file of module `name`, None for a name in a module and for installed packages."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or not (spec.origin or "").endswith(".py"):
        return None
    path = Path(str(spec.origin))
    if not rest:
        return path
    inside = path.parent.joinpath(*rest)
    for file in (inside.with_suffix(".py"), inside / "__init__.py"):
        if path.name == "__init__.py" and file.is_file():
            return file
    return None
