"""Imports on first use, by one thread at a time and without looking for garbage meanwhile."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import lazy_loader

FIRST_USE = RLock()
"""Held while a name is used first. scikit-learn's modules import each other in circles, and several
threads at once would see half of one, or end in Python's deadlock error. Nobody who holds it waits
for a module whose import needs it: no module of metrics and calibrators imports such a name."""


@contextmanager
def no_collection() -> Iterator[None]:
    """Within the block Python does not look for cycles among objects.

    Imports make many objects and hardly any garbage. Looking through them again and again takes a
    fifth of the time of importing numba and pandas.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on and not gc.get_freeze_count():
            gc.freeze()  # both together move all objects to the oldest, seldom searched generation
            gc.unfreeze()
        if is_on:
            gc.enable()


def on_first_use(package: str, file: str) -> tuple[Callable[[str], Any], Any, list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose stub has its names."""
    get, names, listed = lazy_loader.attach_stub(package, file)

    def get_alone(name: str) -> Any:
        if name not in listed:  # Python also asks for modules, and for names such as __wrapped__
            return get(name)
        with FIRST_USE, no_collection():
            return get(name)

    return get_alone, names, listed
