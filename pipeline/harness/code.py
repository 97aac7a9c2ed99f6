"""The version of the code behind a result: a digest of every file that a target imports.

A target is what a configuration names by `_target_`. Its file counts, and each file of this
repository that this one imports, at any depth. Comments and docstrings do not count. Nothing is
imported here; the source is read.
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


class UnknownTarget(LookupError):
    """A dotted name that leads to no source file. One line."""


@cache
def code_digest(*targets: str) -> str:
    """SHA-256 over the files behind `targets` and all that they import.

    A target is a module (`pipeline.harness.splits`) or a name in one
    (`calibrators.TemperatureScaling`). Of a user's own package the files that the target imports
    from that package count, too. Installed packages do not count.

    Raises:
        UnknownTarget: a target's module does not exist.
    """
    found = {target: "installed" for target in targets if _is_installed(target)}
    own = [target for target in targets if target not in found]
    ours = {*PACKAGES, *(target.partition(".")[0] for target in own)}
    waiting = [_module_of(target) for target in own]
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        tree = _tree(module)
        found[module] = ast.dump(tree)
        names = (name for names in _imports(module, tree).values() for name in names)
        waiting += [_module_of(name) for name in names if name.partition(".")[0] in ours]
    return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()


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
    top = target.partition(".")[0]
    spec = None if top in PACKAGES else importlib.util.find_spec(top)
    return spec is not None and "site-packages" in (spec.origin or "")


@cache
def _module_of(name: str) -> str:
    """The module that defines `name`; a package that only passes a name on is passed over."""
    if _file(name) is not None:
        return name
    owner, _, attribute = name.rpartition(".")
    if not owner:
        raise UnknownTarget(f"{name}: no such module or name; check `_target_`")
    if _file(owner) is None:
        return _module_of(owner)
    passed_on = _imports(owner, _parsed(owner)).get(attribute)
    return _module_of(passed_on[0]) if passed_on else owner


@cache
def _parsed(module: str) -> ast.Module:
    path = _file(module)
    assert path is not None
    return ast.parse(path.read_text(encoding="utf-8"))


def _tree(module: str) -> ast.Module:
    """A module's syntax tree without docstrings and without what only type checkers read."""
    path = _file(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [one for one in body if not _is_text(one) and not _is_for_checkers(one)]
            node.body = kept  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_for_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports(module: str, tree: ast.Module) -> dict[str, list[str]]:
    """The names that the imports in `tree` bind, and the dotted names that they stand for."""
    path = _file(module)
    is_package = path is not None and path.name == "__init__.py"
    package = module.split(".") if is_package else module.split(".")[:-1]
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, []).append(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                target = base if alias.name == "*" else f"{base}.{alias.name}"
                found.setdefault(alias.asname or alias.name, []).append(target)
    return found


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
    if path.name != "__init__.py":
        return None
    inside = path.parent.joinpath(*rest)
    candidates = (inside.with_name(inside.name + ".py"), inside / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)
