"""How tests ask for an error: by its facts, so that its sentence may become a better one."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from utility_calibration.metrics.errors import InputError


@contextmanager
def refuses(
    field: str = "",
    row: int | None = None,
    column: str = "",
    fix: str = "",
    number: str = "",
    file: object = "",
) -> Iterator[None]:
    """Require an `InputError` of these facts, in one line. What is left out may be anything.

    `fix` is a word that settles it (an option, a call), `number` one that is told.
    """
    with pytest.raises(InputError) as caught:
        yield
    check_facts(caught.value, field, row, column, fix, number, file)


@contextmanager
def fails(kind: type[Exception] | tuple[type[Exception], ...], *told: str) -> Iterator[None]:
    """Require an error whose one line has these names, numbers and commands."""
    with pytest.raises(kind) as caught:
        yield
    check_line(str(caught.value), *told)


def check_facts(
    error: InputError,
    field: str = "",
    row: int | None = None,
    column: str = "",
    fix: str = "",
    number: str = "",
    file: object = "",
) -> None:
    """Check the facts of an error (`refuses`)."""
    facts = f"{error.field!r} {error.where} {error.fixes}"
    check_line(str(error), number)
    assert not field or error.field == field, facts
    assert row is None or error.where.row == row, facts
    assert not column or error.where.column == column, facts
    assert any(fix in each for each in error.fixes) or not fix, facts
    assert not file or error.where.file == str(file), facts


def check_line(line: str, *told: str) -> None:
    """Check that a message is one line that has these names, numbers and commands."""
    assert line.isprintable() and len(line) < 1200, line
    for each in told:
        assert each in line, line
