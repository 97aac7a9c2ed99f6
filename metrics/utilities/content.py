"""A text for what a utility holds and computes: it is equal where utilities have equal errors.

A file of `StreamingCalibration` has a digest of this text, and no utility itself. Values count by
their content. A person's functions and classes count by their code, because two lambdas have one
name. What cannot be compared gets a text of its own in each program: sums of it are then refused
rather than added to sums of something else.
"""

from __future__ import annotations

import dis
import hashlib
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..arrays import plain

OURS = f"{__name__.partition('.')[0]}."
"""How the names of this package's modules begin. Its classes and functions count by their names."""
SIMPLE = (type(None), type(...), bool, int, float, complex, str, bytes, np.generic)
"""Types whose `repr` shows all of a value."""


def content_of(value: Any, module: str = "", above: tuple[int, ...] = ()) -> str:
    """Return a text that equal values share in all programs of one version of Python.

    Args:
        value: what a utility holds, or a part of it.
        module: where the function is from that uses `value`. Functions and classes of other modules
            count by their names, so that no library is read as a whole.
        above: the identities of all that contains `value`, because a function may call itself.
    """
    if isinstance(value, SIMPLE):
        return repr(value)
    if id(value) in above:
        return "itself"
    above = (*above, id(value))

    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, FunctionType | type):
        is_elsewhere = module not in ("", value.__module__)
        if is_elsewhere or value.__module__.startswith(OURS):
            return f"{value.__module__}.{value.__qualname__}"
        module = value.__module__

    parts = [content_of(part, module, above) for part in _parts(value)]
    if isinstance(value, set | frozenset):  # whose order differs from program to program
        parts.sort()
    return f"{type(value).__name__}({', '.join(parts)})"


def _parts(value: Any) -> Iterator[Any]:
    """Yield all on which it depends what `value` is."""
    if isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, dict):
        for item in value.items():
            yield from item
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield from (str(value.dtype), value.shape)
        yield hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    elif isinstance(value, CodeType):
        yield from (value.co_code, value.co_names, value.co_consts, value.co_exceptiontable)
    elif isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, type):
        yield from (value.__qualname__, value.__bases__)
        for member in vars(value).values():
            # Properties, class methods and static methods have their function inside.
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(member, (*SIMPLE, FunctionType)):
                yield member
    else:
        yield from _parts_of_object(value)


def _parts_of_function(function: FunctionType) -> Iterator[Any]:
    """Yield the code of a function, and all values that it reads besides its arguments."""
    yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        yield cell.cell_contents
    for name in sorted(_global_names(function.__code__) & function.__globals__.keys()):
        yield from (name, function.__globals__[name])


def _global_names(code: CodeType) -> set[str]:
    """Return the global names that are read by a code and by the functions inside it."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _parts_of_object(value: Any) -> Iterator[Any]:
    """Yield of what `copy` would make an equal object; its address if nothing is known of it."""
    value = plain(value)  # tensors become arrays
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:  # such as a lock, or an open file
        reduced = f"{type(value).__qualname__} at {id(value)}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield value
    elif isinstance(reduced, str):
        yield reduced
    else:
        for part in reduced:
            is_iterator = hasattr(part, "__next__")
            yield list(part) if is_iterator else part
