"""Text from a user's file: checks of names, short forms for messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError

CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, such as line ends and changes of direction."""
JOINERS = "\u00ad\u200c\u200d"
"""Characters of these categories that names in Persian and Hindi need."""


def text_of(values: Any, n: int, field: str) -> NDArray[np.str_]:
    """`values` [n] as text without spaces around it.

    Raises:
        InputError: the shape is wrong, or an entry is empty or has control characters; rows count
            from 0.
    """
    entries = np.asarray(values)
    if entries.shape != (n,):
        raise InputError(f"{field}: shape {list(entries.shape)}; give [{n}], a name for each")
    if entries.dtype.kind == "S":
        entries = np.char.decode(entries, "utf-8", "replace")
    text = np.char.strip(entries.astype(np.str_))
    for name in np.unique(text).tolist():
        row = int((text == name).argmax())
        if not name:
            raise InputError(f"{field}: none in row {row}; complete or remove such rows")
        if not is_plain(name):
            raise InputError(
                f"{field}: {short(name)} in row {row} holds control characters; rename it"
            )
    return text


def is_plain(name: str) -> bool:
    """Whether a name holds no control character."""
    return all(c in JOINERS or unicodedata.category(c) not in CONTROLS for c in name)


def listed(values: Sequence[Any] | NDArray[Any]) -> str:
    """The first five of the values, shortened for a message."""
    shown = [short(str(value)) for value in list(values)[:5]]
    return ", ".join(shown) + (", …" if len(values) > 5 else "")


def short(text: str) -> str:
    """A text from a file, printable and shortened for a message."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 30 else f"{printable[:30]}…"
