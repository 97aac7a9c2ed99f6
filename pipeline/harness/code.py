"""The version of the code behind a result: a digest of every file that computes it.

A target is a module, or a name in one, such as a `_target_` of a configuration. The digest covers
its file and each file of this repository that it imports, at any depth. It leaves out comments,
docstrings and `pipeline.harness`, which decides when a unit is computed, not how. The source is
read, not imported. In a wheel the modules' names begin with `utility_calibration.` (setup.py).
"""

import ast
import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("pipeline", "calibrators", "metrics")
NOT_COUNTED = __name__.rpartition(".")[0]
LONG = "utility_calibration."
PREFIX = LONG if __name__.startswith(LONG) else ""  # what the names of our modules begin with, here
ROOT = Path(__file__).resolve().parents[2]  # the clone, or `utility_calibration/` of a wheel
COMMAND = re.compile(r"python -m pipeline\.(\w+)|(?:python )?scripts/(score|apply)\.py")


class UnknownTarget(LookupError):
    """A dotted name that leads to no source file. One line."""


def as_typed(text: str) -> str:
    """A text with the commands of a clone, as a person types them where this is installed."""
    return COMMAND.sub(r"utility-calibration \1\2", text) if PREFIX else text


def is_ours(name: str) -> bool:
    """Whether a dotted name leads to a package of this project, as it is called here."""
    inner = name.removeprefix(PREFIX)
    return (inner != name or not PREFIX) and inner.partition(".")[0] in PACKAGES


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
    waiting = [_module_of(_here(target)) for target in targets]
    others = {module.partition(".")[0] for module in waiting if not is_ours(module)}
    while waiting:
        module = waiting.pop()
        if module in sources or module.startswith(NOT_COUNTED):
            continue
        sources[module] = _content(module)
        names = [name for _, name in _imports(module)]
        followed = [name for name in names if is_ours(name) or name.partition(".")[0] in others]
        waiting += map(_module_of, followed)
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()


def _here(name: str) -> str:
    """The name of a module here; in a clone, `utility_calibration.metrics` is `metrics`."""
    short = name.removeprefix(LONG)
    return PREFIX + short if short != name and is_ours(PREFIX + short) else name


@cache
def _module_of(name: str) -> str:
    """The module that defines `name`, not a package that only imports it from there."""
    if _file(name) is not None:
        return name
    owner, _, attribute = name.rpartition(".")
    if not owner:
        raise UnknownTarget(f"{name}: no such module or name; check `_target_`")
    if _file(owner) is None:
        return _module_of(owner)
    # Packages import their public names for type checkers, and else when a name is first used.
    passed_on = [target for bound, target in _imports(owner) if bound == attribute]
    return _module_of(passed_on[0]) if passed_on else owner


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
    is_package = str(_file(module)).endswith("__init__.py")
    package = module if is_package else module.rpartition(".")[0]
    names = []
    for node in _statements(_tree(module)):
        if isinstance(node, ast.Import):
            names += [(alias.asname or alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                target = base if alias.name == "*" else f"{base}.{alias.name}"
                names.append((alias.asname or alias.name, target))
    return [(bound, _here(target)) for bound, target in names]


@cache
def _file(module: str) -> Path | None:
    """The source file of a module; None for a name in a module and for modules without source."""
    place = ROOT.joinpath(*module.removeprefix(PREFIX).split("."))
    if not is_ours(module):
        top, *rest = module.split(".")
        spec = importlib.util.find_spec(top)
        if spec is None or not (spec.origin or "").endswith(".py"):
            return None
        if not rest:
            return Path(str(spec.origin))
        place = Path(str(spec.origin)).parent.joinpath(*rest)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)
