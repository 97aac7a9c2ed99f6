"""How kernels are compiled: by numba, without the interpreter's lock, and kept between processes.

numba keeps compiled code per file and looks only at that file's age. A kernel that calls one from
another file would go on running the old version of it after an edit. So the code is kept in a
folder named after the content of all kernels, and any edit starts an empty one.

That folder lies in `NUMBA_CACHE_DIR` if this is set, else in `metrics/__pycache__`. Where it cannot
be written, nothing is kept and every process compiles the kernels that it calls.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from numba.core.runtime.nrt import rtsys

ROOT = Path(__file__).resolve().parents[2]
MARK = "compiled import compiled"
"""A file that holds this text holds kernels."""
SETTINGS: Any = numba.config


@cache
def _folder() -> Path | None:
    """Return the folder of the present kernels, made if need be; None if it cannot be written."""
    sources = []
    for package in ("metrics", "calibrators"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if MARK in text:
                sources.append(text)
    digest = hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]
    parent = Path(SETTINGS.CACHE_DIR or ROOT / "metrics" / "__pycache__")
    folder = parent / f"kernels-{digest}"
    is_new = not folder.exists()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)  # another process may have made it meanwhile
    is_writable = os.access(folder, os.W_OK)
    if is_new or not is_writable:
        later = f"later runs find the code in {folder}"
        if not is_writable:
            later = f"every run does, as {folder} cannot be written: set NUMBA_CACHE_DIR"
        print(
            f"compiling kernels as they are used, which can take a minute; {later}", file=sys.stderr
        )
    return folder if is_writable else None


def compiled(function: Callable[..., Any], fastmath: Collection[str] = ()) -> Callable[..., Any]:
    """Decorate a function on arrays and numbers: compiled at its first call with given types."""
    before, folder = SETTINGS.CACHE_DIR, _folder()
    SETTINGS.CACHE_DIR = str(folder or before)
    try:
        is_kept, flags = folder is not None, set(fastmath)
        return _healing(numba.njit(nogil=True, cache=is_kept, fastmath=flags)(function))
    finally:
        SETTINGS.CACHE_DIR = before


def _healing(kernel: Any) -> Callable[..., Any]:
    """The kernel, which is compiled anew where the kept code cannot be read, after a full disk.

    Before numba reads kept code, it imports all that its compiler needs, which takes longer than
    reading. Kept code needs only numba's memory manager (`rtsys`), so that alone is started here.
    """
    cache: Any = getattr(kernel, "_cache", None)  # NUMBA_DISABLE_JIT=1 leaves the plain function
    if not hasattr(cache, "_load_overload"):
        return kernel

    def load_or_none(signature: Any, context: Any) -> Any:
        try:
            rtsys.initialize(context)
            return cache._load_overload(signature, context)
        except Exception as error:  # pickle raises many kinds
            message = (
                f"compiling {kernel.__name__} anew, because the code in {cache.cache_path} is "
                f"damaged ({type(error).__name__})"
            )
            print(message, file=sys.stderr)
            cache.flush()
            return None

    cache.load_overload = load_or_none
    return kernel


compiled_sums = partial(compiled, fastmath={"reassoc", "contract", "nsz"})
"""As `compiled`, for loops that add up: sums may be reordered into vector lanes, which depend on
the machine alone. Nothing here may assume away infinities."""
