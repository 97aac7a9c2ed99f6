"""What messages say of a file: its parts in short and printable, all mistakes at once."""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Any

from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode's control characters, line ends, …"""
JOINERS = "\u00ad\u200c\u200d"
"""Of these categories, but needed in Persian and Hindi names."""
SAVEZ = "numpy.savez('my.npz', logits=…, labels=…)"
COMPLETE = "complete or remove such cases"
IMPOSSIBLE = "where a case lacks an option, give this the logit -inf or the probability 0"
NAME_CLASSES = "name the columns of the classes: --classes NAME,NAME"
LONGEST_TYPED = 60
"""Characters of a name that a message asks a person to type."""
ONE_CLASS = "give cases of at least two classes"
IGNORE = "leave out what is no class: --ignore NAME,NAME"


@contextmanager
def kept(mistakes: list[InputError]) -> Iterator[None]:
    """Keep an `InputError` of the block, so that all that is wrong can be said at once."""
    try:
        yield
    except InputError as error:
        mistakes.append(error)


def normal(name: str) -> str:
    """A name with one code for each letter; some programs write é as e and an accent."""
    return unicodedata.normalize("NFC", name)


def is_plain(name: str) -> bool:
    """Whether a name holds no control character."""
    return all(c in JOINERS or unicodedata.category(c) not in CONTROLS for c in name)


def some_of(values: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """The first five of the values, cut off for a message."""
    shown = [cut_off(str(value)) for value in list(values)[:most]]
    if len(values) > most:
        shown.append("…")
    return ", ".join(shown)


def cut_off(text: str) -> str:
    """A text from a file, printable and cut off for a message."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 30 else f"{printable[:30]}…"


def typed(option: str, name: str) -> str:
    """An option with a name from a file, as one types it in a shell: --labels 'True Label'.

    `name` may be several names with commas between them.
    """
    longest = max(map(len, name.split(",")))
    if longest > LONGEST_TYPED or not name.isprintable():
        return f"{option} NAME"
    # An argument that begins with a minus would be taken for another option.
    between = "=" if name.startswith("-") else " "
    return f"{option}{between}{quote(name)}"


def all_are_text(n: int, name: str) -> str:
    """What is wrong with points of which none can be told from another."""
    return f"all {n} are {cut_off(name)}"


def all_of_one_class(n: int, name: str) -> InputError:
    """The error on such points."""
    return InputError(all_are_text(n, name), field="labels", fixes=ONE_CLASS)
