"""The errors of bad input and of what is missing, in a file that needs no other package."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Self

STYLE = re.compile(r"\x1b\[[\d;]*m")  # bold and colours of a terminal, as torch puts into messages


class Where(NamedTuple):
    """A place in the input: a file, a row, which counts from 0, and a column by its name."""

    file: str = ""
    row: int | None = None
    column: str = ""


class InputError(ValueError):
    """Input that cannot be used. One line names file, field, what is wrong where, and the fix.

    Attributes:
        field: the argument, array, column or option that is wrong.
        where: its place.
        fixes: what settles it, each one by itself.
        others: further mistakes in the same file.

    >>> try:
    ...     accuracy([[0.5, 0.5], [0.9, 0.9]], labels=[0, 1])
    ... except InputError as error:
    ...     error.field, error.where.row
    ('probabilities', 1)
    """

    def __init__(
        self,
        message: object,
        *,
        field: str = "",
        row: int | None = None,
        column: str = "",
        file: object = "",
        fixes: str | Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.field, self.where = field, Where(str(file), row, column)
        self.fixes = (fixes,) if isinstance(fixes, str) and fixes else tuple(fixes)
        self.others: tuple[InputError, ...] = ()

    @classmethod
    def of_all(cls, mistakes: Sequence[Self]) -> Self:
        """One error for several mistakes, of which there is at least one."""
        first = mistakes[0]
        first.others = tuple(mistakes[1:])
        return first

    def in_file(self, file: object) -> Self:
        """Return this error, which now says that the input comes from `file`, if it said none."""
        self.where = self.where._replace(file=self.where.file or str(file))
        return self

    def __str__(self) -> str:
        mistakes = (self, *self.others)
        lines = dict.fromkeys(mistake._line() for mistake in mistakes)  # each once
        text = "; also: ".join(lines)
        return printable(f"{self.where.file}: {text}" if self.where.file else text)

    def _line(self) -> str:
        """Return the line of this mistake alone: field, message, place and fixes."""
        _, row, column = self.where
        line = str(self.args[0])
        if self.field:
            line = f"{self.field}: {line}"
        if row is not None:
            line += f" in row {row}"
        if column:
            line += f" {'in' if row is None else 'of'} column `{column}`"
        if self.fixes:
            line += f"; {', or '.join(self.fixes)}"
        return line


@contextmanager
def naming(file: object) -> Iterator[None]:
    """Let an `InputError` of the block say that the input comes from `file`."""
    try:
        yield
    except InputError as error:
        error.in_file(file)
        raise


class MissingResource(RuntimeError):
    """A missing file, package or download. One line: what is missing, how to get it."""


def printable(text: str) -> str:
    """Return a text as one line without the control characters that files and libraries put in."""
    words = " ".join(STYLE.sub("", text).split())
    return "".join(c if c.isprintable() else " " for c in words)


def reason_of(error: BaseException) -> str:
    """Return a library's message, perhaps of many lines, as one line of at most 160 characters."""
    text = printable(str(error)) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."
