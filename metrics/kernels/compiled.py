"""How kernels are compiled: by numba, without the interpreter's lock, and kept between processes.

numba keeps compiled code per file and looks only at that file's age. A kernel that calls one from
another file would go on running the old version of it after an edit. So the code is kept in a
folder named after the content of all kernels: any edit starts an empty one, and the oldest go.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

import numba

ROOT = Path(__file__).resolve().parents[2]
MARKS = ("compiled import compiled", "numba.extending import")
KEPT = 4
"""Folders of earlier kernels that stay: going back to one costs no compilation."""


@cache
def _folder() -> str:
    sources = [
        text
        for package in (ROOT / "metrics", ROOT / "calibrators")
        for path in sorted(package.rglob("*.py"))
        if any(mark in (text := path.read_text(encoding="utf-8")) for mark in MARKS)
    ]
    digest = hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]
    folder = ROOT / "metrics" / "__pycache__" / f"kernels-{digest}"
    if not folder.exists():
        earlier = sorted(folder.parent.glob("kernels-*"), key=_last_change)
        for path in earlier[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)
    return str(folder)


def _last_change(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process that starts now removed it
        return 0.0


def compiled(function: Callable[..., Any], fastmath: Collection[str] = ()) -> Callable[..., Any]:
    """Decorate a function on arrays and numbers: compiled at its first call with given types."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _folder()
    try:
        return numba.njit(nogil=True, cache=True, fastmath=set(fastmath))(function)
    finally:
        settings.CACHE_DIR = before


def compiled_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `compiled`, for loops that add up: sums may be reordered into vector lanes.

    Nothing here may assume away infinities. The order depends on the machine's lanes only, so the
    same machine gives the same bytes.
    """
    return compiled(function, {"reassoc", "contract", "nsz"})
