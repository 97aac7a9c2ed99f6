"""Whether a result is still the result: a digest of the code that made it.

It covers the definitions that a target reaches: its function, class or constant, whatever that
names, in this module or by import, and so on. Comments, docstrings, layout, annotations of plain
functions and the file that a definition stands in do not count. So a refactoring that leaves the
code of a fit as it is leaves the fit as it is, and a new metric touches no calibrator. A class
counts as a whole, as its methods are found by name only when it runs; so does a module that is
imported as one, and every module of a user's own package. Nothing is imported here; the source is
read.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("pipeline", "calibrators", "metrics")
WITHOUT_EFFECT = ("metrics.validation",)
"""Checks pass a value on or refuse it: rewording an error makes no result stale."""

Place = tuple[str, int]
"""A statement: its module and its number there."""


class UnknownTarget(LookupError):
    """A dotted name that leads to no source file. One line."""


@cache
def source_fingerprint(*targets: str) -> str:
    """SHA-256 over the definitions behind `targets` and all that they reach.

    A target is a module (`pipeline.harness.splits`) or a name in one
    (`calibrators.TemperatureScaling`). Names outside this repository (NumPy, SciPy) count by name;
    of a user's own package all that the target imports from that package does.
    """
    walk = _Walk(targets)
    # Where a definition stands does not count: each is named by its place in the walk.
    code = [(_module(name).texts[number], uses) for (name, number), uses in walk.uses.items()]
    return hashlib.sha256(json.dumps([walk.starts, code]).encode()).hexdigest()


def targets_in(settings: Any) -> Iterator[str]:
    """Every `_target_` of a configuration, also of what is nested in it."""
    if isinstance(settings, Mapping):
        if "_target_" in settings:
            yield str(settings["_target_"])
        settings = list(settings.values())
    if isinstance(settings, list):
        for value in settings:
            yield from targets_in(value)


def reached_names(*targets: str) -> set[str]:
    """The names that `source_fingerprint(*targets)` covers, as `module.name`."""
    return {
        f"{module}.{name}"
        for module, number in _Walk(targets).uses
        for name, numbers in _module(module).binds.items()
        if number in numbers
    }


class _Walk:
    """Breadth first from the targets, so that equal code is met in equal order.

    `uses` has each statement met, with the names it uses and the numbers of what these stand for.
    """

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.packages = {*PACKAGES, *(target.partition(".")[0] for target in targets)}
        self._met: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self.starts = [self._numbered(self._places(target)) for target in targets]
        self.uses = {
            place: list(self._uses(*place)) for place in self._met
        }  # which `_met` outgrows

    def _numbered(self, places: list[Place]) -> list[int]:
        for place in places:
            if place not in self._numbers:
                self._numbers[place] = len(self._met)
                self._met.append(place)
        return [self._numbers[place] for place in places]

    def _uses(self, name: str, number: int) -> Iterator[tuple[str, list[int]]]:
        module = _module(name)
        for used, target in _used(name, number):
            if target is None:
                yield used, self._numbered([(name, one) for one in module.binds[used]])
            elif self._is_ours(target):
                yield used, self._numbered(self._places(target))
            else:
                yield f"{used} = {target}", []
        yield "", self._numbered([(name, one) for one in module.effects])

    def _is_ours(self, target: str) -> bool:
        within = any(f"{target}.".startswith(f"{one}.") for one in WITHOUT_EFFECT)
        return target.partition(".")[0] in self.packages and not within

    def _places(self, target: str) -> list[Place]:
        """The statements behind a module, or a name in a module or package."""
        if _find(target) is not None:
            return self._whole(target)
        owner, _, name = target.rpartition(".")
        if not owner:
            raise UnknownTarget(f"{target}: no such module or name; check `_target_`")
        if _find(owner) is None:
            return self._places(owner)  # an attribute of a class, such as Rank.sample
        if name == "*":
            return self._whole(owner)
        module = _module(owner)
        if name in module.binds:
            if owner.partition(".")[0] not in PACKAGES:  # it may register what nobody names
                return self._whole(owner)
            return [(owner, number) for number in module.binds[name]]
        if name in module.imports:
            return [place for one in module.imports[name] for place in self._places(one)]
        raise UnknownTarget(f"{target}: {owner} has no such name; check `_target_`")

    def _whole(self, name: str) -> list[Place]:
        """All statements of a module, and the modules whose names a package passes on."""
        module = _module(name)
        passed_on = module.imports.values() if module.is_package else ()
        others = [one for targets in passed_on for one in targets if self._is_ours(one)]
        places = [place for one in others for place in self._places(one)]
        return [*((name, number) for number in range(len(module.texts))), *places]


@dataclass
class _Module:
    """The statements of a file's top level, but imports and what only states a string."""

    is_package: bool
    texts: list[str] = field(default_factory=list)
    """Of each statement, without comments, docstrings and layout."""
    trees: list[ast.stmt] = field(default_factory=list)
    binds: dict[str, list[int]] = field(default_factory=dict)
    """The statements that give a name its value."""
    imports: dict[str, list[str]] = field(default_factory=dict)
    """What an imported name stands for, as a dotted name."""
    effects: list[int] = field(default_factory=list)
    """Statements that do more than to bind names: they count whenever the module does."""


@cache
def _used(module: str, number: int) -> list[tuple[str, str | None]]:
    """The names that a statement uses with what they stand for; None: a statement here."""
    own = _module(module)
    nodes = list(ast.walk(own.trees[number]))
    inside = _imports(nodes)
    found: list[tuple[str, str | None]] = [
        (name, target) for name in inside for target in inside[name]
    ]
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    for name in dict.fromkeys(["*", *names]):
        found += ((name, target) for target in own.imports.get(name, ()))
        if name in own.binds:
            found.append((name, None))
    return found


@cache
def _module(name: str) -> _Module:
    location = _find(name)
    if location is None:
        raise UnknownTarget(f"{name}: no such module; check `_target_`")
    tree = ast.parse(location.read_text(encoding="utf-8"))
    module = _Module(is_package=location.name == "__init__.py")
    package = name.split(".") if module.is_package else name.split(".")[:-1]
    for statement in _without_strings_and_annotations(_absolute(tree, package)).body:
        if _only_imports(statement):
            for bound, imported in _imports(ast.walk(statement)).items():
                module.imports.setdefault(bound, []).extend(imported)
        elif not (isinstance(statement, ast.If) and "__name__ ==" in ast.unparse(statement.test)):
            number = len(module.texts)
            module.texts.append(ast.unparse(statement))
            module.trees.append(statement)
            for own in _bound(statement):
                module.binds.setdefault(own, []).append(number)
            if not isinstance(statement, _DEFINITIONS) or _assigns_elsewhere(statement):
                module.effects.append(number)
    return module


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def _absolute(tree: ast.Module, package: list[str]) -> ast.Module:
    """`tree` with the leading dots of its imports resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            kept = package[: len(package) - node.level + 1]
            node.module, node.level = ".".join([*kept, *([node.module] if node.module else [])]), 0
    return tree


def _without_strings_and_annotations(tree: ast.Module) -> ast.Module:
    """`tree` without docstrings, also those below attributes, and types of plain functions.

    A decorator may read the types of its function; nobody reads those of others.
    """
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [statement for statement in body if not _is_bare_string(statement)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
    return tree


def _is_bare_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _only_imports(statement: ast.stmt) -> bool:
    """An import, or a block of nothing else (`if TYPE_CHECKING:`)."""
    if isinstance(statement, ast.If):
        return all(map(_only_imports, [*statement.body, *statement.orelse]))
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass))


def _imports(nodes: Iterable[ast.AST]) -> dict[str, list[str]]:
    """The names that the imports among `nodes` bind, and the dotted names behind them."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                bound = alias.asname or (alias.name if base else alias.name.partition(".")[0])
                found.setdefault(bound, []).append(base + alias.name)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """The names of the module that `statement` binds; what a block binds, it binds."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    inner = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt)]
    stored = (
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return {*stored, *(name for one in inner for name in _bound(one))}


def _assigns_elsewhere(statement: ast.stmt) -> bool:
    """Whether it changes an object (`a.b = 1`, `a[0] = 1`) instead of binding a name."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)


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
