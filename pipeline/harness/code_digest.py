"""The version of the code behind a result: a digest of every file that computes it.

A target is a module, or a name in one, such as a `_target_` of a configuration. The digest covers
its file and each file of this repository that it imports, at any depth. It leaves out comments,
docstrings and pipeline/harness, which decides when a unit is computed, not how. It also leaves out
what a package imports when a name is first used (its `__init__.pyi`). The source is read, not
imported. What was read of a file is kept in `__pycache__`, under a digest of that file.
"""

import ast
import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .artifacts import write_text

Names = list[tuple[str, str]]  # each name that a file imports, and the dotted name it refers to
KEPT = Path(__file__).parent / "__pycache__" / "sources"
THIS_CODE = Path(__file__).read_text(encoding="utf-8")
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
    packages = {OURS, *map(_package_of, waiting)}
    while waiting:
        module = waiting.pop()
        if module in sources or module.startswith(NOT_COUNTED):
            continue
        sources[module], imported = _read(module, _path(module))
        for _, name in imported:
            if _package_of(name) in packages:
                waiting.append(_module_of(name))
    # The order in which files were found does not count.
    entries = [f"{json.dumps(module)}: {sources[module]}" for module in sorted(sources)]
    return _sha256("{" + ", ".join(entries) + "}")


def _package_of(name: str) -> str:
    """The first part of a dotted name."""
    return name.partition(".")[0]


@cache
def _module_of(name: str) -> str:
    """The module that defines `name`, not a package that only imports it from there."""
    refuse_short(name)
    if _file(name) is not None:
        return name
    owner, _, attribute = name.rpartition(".")
    if not owner:
        if importlib.util.find_spec(name) is None:
            # Here, because the import takes a second.
            from utility_calibration.calibrators.wrapped import INSTALL

            fix = f"check `_target_`, or install the package: pip install {INSTALL}"
            raise UnknownTarget(f"{name}: not installed; {fix}")
        raise UnknownTarget(f"{name}: no such module or name; check `_target_`")
    if _file(owner) is None:
        return _module_of(owner)
    for bound, target in _passed_on(owner):
        if bound == attribute:
            return _module_of(target)
    return owner


def refuse_short(name: str) -> None:
    """Raise UnknownTarget for `metrics.X`, unless a person has a module of that name."""
    top = _package_of(name)
    if top not in ROOMS:
        return
    file_of_person = _file(top)
    file_of_ours = _file(f"{OURS}.{top}")
    if file_of_person is None or file_of_person.samefile(str(file_of_ours)):
        raise UnknownTarget(f"{name}: its name is {OURS}.{name}; correct `_target_`")


def _sha256(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@cache
def _read(module: str, path: Path) -> tuple[str, Names]:
    """A module's file as a syntax tree, which is a text in JSON, and the names that it imports.

    Parsing all files takes .3 s in every run, also in one with nothing to do, and reading what was
    kept .04 s. The first line of a kept file is a digest of what is in it, of the source, and of
    the code that made it. If it does not agree, the source is parsed again.
    """
    source = path.read_text(encoding="utf-8")
    inputs = sys.version, THIS_CODE, module, path.name, source
    cache_file = KEPT / f"{module}{path.suffix}.txt"
    with suppress(OSError, ValueError):
        digest, *lines = cache_file.read_text(encoding="utf-8").split("\n")
        if digest == _sha256(*inputs, *lines):
            return lines[0], json.loads(lines[1])
    tree = _tree(source)
    content = json.dumps(ast.dump(tree))
    imported = _names_in(tree, module, path)
    lines = [content, json.dumps(imported)]
    with suppress(OSError):
        write_text(cache_file, "\n".join((_sha256(*inputs, *lines), *lines)))
    return content, imported


def _tree(source: str) -> ast.Module:
    """The syntax tree of a source without docstrings."""
    tree = ast.parse(source)
    for node in (tree, *_statements(tree)):
        body = getattr(node, "body", None)
        if body:
            node.body = [line for line in body if not _is_text(line)]  # type: ignore[attr-defined]
    return tree


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
def _passed_on(module: str) -> Names:
    """The names that a module imports, and those that a package's `__init__.pyi` imports for it."""
    path = _path(module)
    stub = path.with_suffix(".pyi")
    _, names = _read(module, path)
    if stub.is_file():
        _, later_names = _read(module, stub)
        names = names + later_names
    return names


def _path(module: str) -> Path:
    path = _file(module)
    assert path is not None
    return path


def _names_in(tree: ast.Module, module: str, path: Path) -> Names:
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
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
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file
    return None
