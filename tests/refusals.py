"""How tests ask for an `InputError`: by its facts, so that its sentence may become a better one."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from utility_calibration.metrics.errors import InputError


@contextmanager
def refuses(
    field: str = "", row: int | None = None, column: str = "", fix: str = "", number: str = ""
) -> Iterator[None]:
    """Require an `InputError` of these facts, in one line. What is left out may be anything.

    `fix` is a word that settles it (an option, a call), `number` one that is told.
    """
    with pytest.raises(InputError) as caught:
        yield
    check_facts(caught.value, field, row, column, fix, number)


def check_facts(
    error: InputError,
    field: str = "",
    row: int | None = None,
    column: str = "",
    fix: str = "",
    number: str = "",
) -> None:
    """Check the facts of an error (`refuses`)."""
    line, facts = str(error), f"{error.field!r} {error.where} {error.fixes}"
    assert line.isprintable() and len(line) < 500, line
    assert not field or error.field == field, facts
    assert row is None or error.where.row == row, facts
    assert not column or error.where.column == column, facts
    assert any(fix in each for each in error.fixes) or not fix, facts
    assert number in line, line
