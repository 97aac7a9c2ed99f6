"""Build the wheel: the folders of this repository inside the one package `utility_calibration`.

In a clone the folders are packages of their own (`from metrics import TopK`). Installed so, a
user's `metrics.py` would hide ours. So the build copies them below `utility_calibration/` and puts
this name before their imports. Imports are found in the syntax tree: no text that only looks like
a module's name is changed. `_target_` in conf/ gets the name, too.
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PACKAGE = "utility_calibration"
FOLDERS = ("metrics", "calibrators", "pipeline", "scripts", "conf")
OURS = re.compile(r"(?:metrics|calibrators|pipeline|scripts)(?:\.|$)")
TARGET = re.compile(r"(\b_target_: *[\"']?)(?=(?:metrics|calibrators|pipeline)\.)")
FROM = re.compile(rb"from[\s\\]+")


class OneName(build_py):
    """Adds the folders to the package, under its name."""

    def run(self) -> None:
        """Build the package from nothing: a file of an earlier build may be gone by now."""
        if self.editable_mode:  # `utility_calibration.clone` finds the folders
            super().run()
            return
        package = Path(self.build_lib, PACKAGE)
        shutil.rmtree(package, ignore_errors=True)
        super().run()
        for path in files():
            target = package / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".py":
                target.write_bytes(renamed(path.read_bytes()))
            elif path.suffix == ".yaml":
                text = path.read_text(encoding="utf-8")
                target.write_text(TARGET.sub(rf"\1{PACKAGE}.", text), encoding="utf-8")
            else:
                shutil.copyfile(path, target)

    def get_source_files(self) -> list[str]:
        """Return what the sdist has: the folders, too."""
        return [*super().get_source_files(), *(str(path.relative_to(ROOT)) for path in files())]


def files() -> list[Path]:
    """All files of the folders, but not what Python and numba keep there."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    kept = [path for path in found if path.is_file() and not path.name.startswith(".")]
    return [path for path in kept if "__pycache__" not in path.parts]


def renamed(source: bytes) -> bytes:
    """Return Python source whose imports of the folders begin with the package's name.

    A name in quotes stays as it is, because the build cannot know what it is for.
    """
    starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
    inserted: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level and OURS.match(str(node.module)):
            found = FROM.match(source, starts[node.lineno - 1] + node.col_offset)
            assert found is not None
            inserted[found.end()] = f"{PACKAGE}."
        elif isinstance(node, ast.Import):
            for name in (name for name in node.names if OURS.match(name.name)):
                inserted[starts[name.lineno - 1] + name.col_offset] = f"{PACKAGE}."
                if not name.asname:
                    assert name.end_lineno and name.end_col_offset
                    end = starts[name.end_lineno - 1] + name.end_col_offset
                    top, _, inner = name.name.partition(".")  # `import a.b` binds a
                    inserted[end] = f", {PACKAGE}.{top} as {top}" if inner else f" as {top}"
    for place in sorted(inserted, reverse=True):
        source = source[:place] + inserted[place].encode() + source[place:]
    return source


if __name__ == "__main__":
    setup(cmdclass={"build_py": OneName})
