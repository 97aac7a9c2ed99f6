"""Imports on first use, by one thread at a time."""

from collections.abc import Callable
from threading import RLock
from typing import Any

import lazy_loader

FIRST_USE = RLock()
"""Locked while a name is used first. scikit-learn's modules import each other in circles: several
threads at once would see half of one, or end in Python's deadlock error. The lock itself cannot
deadlock, because metrics and calibrators never import a lazy name at module level."""


def on_first_use(package: str, file: str) -> tuple[Callable[[str], Any], Any, list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose stub has its names."""
    get, names, listed = lazy_loader.attach_stub(package, file)

    def get_alone(name: str) -> Any:
        if name not in listed:  # Python also asks for modules, and for names such as __wrapped__
            return get(name)
        with FIRST_USE:
            return get(name)

    return get_alone, names, listed
