"""What DVC caches of a suite: results/suites/<suite>/<stage>/, the arrays that a stage made.

They are hard links to the files that stages work on (copies where the file system has no links), so
that neither DVC, which replaces and removes what it tracks, nor a sweep, which fills the working
files alone, harms the other. After `dvc pull` a stage takes from there what it lacks, and checks it
as it checks its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from calibrators.files import atomic_path
from pipeline.harness.units import Request, Settings


def shared_folder(settings: Settings, stage: str) -> Path:
    """results/suites/<suite>/<stage>, such as `fit/vector`."""
    return Path(settings["paths"]["results"]) / "suites" / settings["suite"]["name"] / stage


def share(request: Request, settings: Settings, stage: str, files: Mapping[str, Path]) -> None:
    """Make the stage's folder hold `files` by these names and no others, of a whole suite."""
    if not request.whole_suite:
        return
    folder = shared_folder(settings, stage)
    for name, path in files.items():
        if not (folder / name).exists() or not path.samefile(folder / name):
            _link(path, folder / name)
    for path in folder.iterdir():
        if path.name not in files and not path.name.startswith("."):  # another process's are hidden
            path.unlink(missing_ok=True)


def adopt(settings: Settings, stage: str, files: Mapping[str, Path]) -> list[Path]:
    """Take those of `files` that are absent from the stage's folder; return what was taken."""
    folder = shared_folder(settings, stage)
    if not folder.is_dir():
        return []
    wanted = [(folder / name, path) for name, path in files.items() if not path.exists()]
    found = [(kept, path) for kept, path in wanted if kept.is_file()]
    for kept, path in found:
        _link(kept, path)
    return [path for _, path in found]


def _link(source: Path, path: Path) -> None:
    with atomic_path(path) as temporary:
        try:
            os.link(source, temporary)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, temporary)
        if path.exists() and temporary.samefile(path):
            path.unlink(missing_ok=True)  # renaming one name of a file to another does nothing
