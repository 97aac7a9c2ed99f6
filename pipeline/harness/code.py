"""The version of the code behind a result: a digest of every file that computes it.

A target is a module, or a name in one, such as a `_target_` of a configuration. The digest covers
its file and each file of this repository that it imports, at any depth. It leaves out comments,
docstrings and pipeline/harness, which decides when a unit is computed, not how. It also leaves out
what a package imports when a name is first used (its `__init__.pyi`). The source is read, not
imported.
"""

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

NOT_COUNTED = __name__.rpartition(".")[0]
OURS = __name__.partition(".")[0]
ROOMS = ("metrics", "calibrators", "pipeline", "scripts")


class UnknownTarget(LookupError):
    """A dotted name that leads to no source file. One line."""


def targets_in(settings: Any) -> Iterator[str]:
    """Every `_target_` in a configuration, at any depth."""
    if isinstance(settings, Mapping):
        if "_target_" in settings:
            yield str(settings["_target_"])
        settings = list(settings.values())
    if isinstance(settings, list):
        for value in settings:
            yield from targets_in(value)


@cache
def code_digest(*targets: str) -> str:
    """SHA-256 over the files behind `targets` and all that they import.

    Of a target in another package, such as a user's, these are the files that it imports from that
    package and from this repository. UnknownTarget: a target's module does not exist.
    """
    sources: dict[str, str] = {}
    waiting = [_module_of(target) for target in targets]
    packages = {OURS, *(module.partition(".")[0] for module in waiting)}
    while waiting:
        module = waiting.pop()
        if module in sources or module.startswith(NOT_COUNTED):
            continue
        sources[module] = _content(module)
        names = [name for _, name in _imports(module)]
        waiting += (_module_of(name) for name in names if name.partition(".")[0] in packages)
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()


@cache
def _module_of(name: str) -> str:
    """The module that defines `name`, not a package that only imports it from there."""
    refuse_short(name)
    if _file(name) is not None:
        return name
    owner, _, attribute = name.rpartition(".")
    if not owner:
        raise UnknownTarget(f"{name}: no such module or name; check `_target_`")
    if _file(owner) is None:
        return _module_of(owner)
    passed_on = [target for bound, target in _passed_on(owner) if bound == attribute]
    return _module_of(passed_on[0]) if passed_on else owner


def refuse_short(name: str) -> None:
    """Raise UnknownTarget for `metrics.X`, the name of older versions, unless it is a person's."""
    top = name.partition(".")[0]
    own, ours = _file(top) if top in ROOMS else None, _file(f"{OURS}.{top}")
    if top in ROOMS and (own is None or own.samefile(str(ours))):
        raise UnknownTarget(f"{name}: its name is {OURS}.{name}; correct `_target_`")


@cache
def _tree(module: str) -> ast.Module:
    """A module's syntax tree without docstrings."""
    path = _file(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in (tree, *_statements(tree)):
        if body := getattr(node, "body", None):
            node.body = [line for line in body if not _is_text(line)]  # type: ignore[attr-defined]
    return tree


@cache
def _content(module: str) -> str:
    return ast.dump(_tree(module))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; expressions hold no import and no docstring."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            yield inner
            yield from _statements(inner)


def _is_text(node: ast.AST) -> bool:
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


@cache
def _imports(module: str) -> list[tuple[str, str]]:
    """Each name that a module imports, and the dotted name that it refers to."""
    return _names_in(_tree(module), module)


@cache
def _passed_on(module: str) -> list[tuple[str, str]]:
    """The names that a module imports, and those that a package's `__init__.pyi` imports for it."""
    stub = Path(str(_file(module))).with_suffix(".pyi")
    later = ast.parse(stub.read_text(encoding="utf-8")) if stub.is_file() else ast.parse("")
    return _imports(module) + _names_in(later, module)


def _names_in(tree: ast.Module, module: str) -> list[tuple[str, str]]:
    is_package = str(_file(module)).endswith("__init__.py")
    package = module if is_package else module.rpartition(".")[0]
    names = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names += [(alias.asname or alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                target = base if alias.name == "*" else f"{base}.{alias.name}"
                names.append((alias.asname or alias.name, target))
    return names


@cache
def _file(module: str) -> Path | None:
    """The source file of a module; None for a name in a module and for modules without source."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or not (spec.origin or "").endswith(".py"):
        return None
    if not rest:
        return Path(str(spec.origin))
    place = Path(str(spec.origin)).parent.joinpath(*rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)
