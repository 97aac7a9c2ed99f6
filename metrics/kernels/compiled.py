"""How kernels are compiled: by numba, without the interpreter's lock, and kept between processes.

numba keeps compiled code per file and looks only at that file's age. A kernel that calls one from
another file would go on running the old version of it after an edit. So the code is kept in a
folder named after the content of all kernels: any edit starts an empty one, and the oldest go.

That folder lies in `NUMBA_CACHE_DIR` if this is set, else in `metrics/__pycache__`. Where it cannot
be written, nothing is kept and every process compiles the kernels that it calls.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection
from functools import cache
from os.path import getmtime
from pathlib import Path
from typing import Any

import numba

ROOT = Path(__file__).resolve().parents[2]
MARK = "compiled import compiled"
"""A file that holds this text holds kernels."""
KEPT = 4
"""Folders of earlier kernels that stay: going back to one costs no compilation."""


def _folder() -> Path:
    """Return the folder of the present kernels, which may not exist yet."""
    sources = [
        text
        for package in (ROOT / "metrics", ROOT / "calibrators")
        for path in sorted(package.rglob("*.py"))
        if MARK in (text := path.read_text(encoding="utf-8"))
    ]
    digest = hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]
    settings: Any = numba.config
    parent = Path(settings.CACHE_DIR or ROOT / "metrics" / "__pycache__")
    return parent / f"kernels-{digest}"


@cache
def _kept_in() -> Path | None:
    """Return the folder in which compiled kernels are kept; None if it cannot be written.

    When it makes a new one, it removes the oldest of the earlier ones.
    """
    folder = _folder()
    try:
        if not folder.exists():
            earlier = sorted(folder.parent.glob("kernels-*"), key=getmtime)
            folder.mkdir(parents=True, exist_ok=True)  # another process may have made it meanwhile
            for path in earlier[:-KEPT]:
                shutil.rmtree(path, ignore_errors=True)
            _say(f"later runs find the code in {folder}")
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        _say(f"every run does, as {folder} cannot be written: set NUMBA_CACHE_DIR")
        return None


def _say(when: str) -> None:
    print(f"compiling kernels as they are used, which can take a minute; {when}", file=sys.stderr)


def compiled(function: Callable[..., Any], fastmath: Collection[str] = ()) -> Callable[..., Any]:
    """Decorate a function on arrays and numbers: compiled at its first call with given types."""
    settings: Any = numba.config
    before, folder = settings.CACHE_DIR, _kept_in()
    settings.CACHE_DIR = str(folder or before)
    try:
        return numba.njit(nogil=True, cache=folder is not None, fastmath=set(fastmath))(function)
    finally:
        settings.CACHE_DIR = before


def compiled_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for loops that add up: sums may be reordered into vector lanes.

    Nothing here may assume away infinities. The order depends on the machine's lanes only, so the
    same machine gives the same bytes.
    """
    return compiled(function, {"reassoc", "contract", "nsz"})
