"""Tables in CSV and TSV: the signs between cells and in numbers, then pandas."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from utility_calibration.metrics.errors import InputError

from ..words.message_text import cut_off
from .decimals import decimal_sign, ungrouped
from .spelling import plain_names
from .table_memory import check_text

if TYPE_CHECKING:
    import pandas as pd

SEEN = 1 << 20
"""Letters that show the signs between cells and in numbers."""
LONGEST_CELL = 2**31 - 1
"""Letters of a cell that are read."""
ONLY_EMPTY: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
"""For pandas: NA and null may be names of classes; a column of numbers refuses them as text."""


class TextForm(NamedTuple):
    """How a file of text separates cells and decimals."""

    separator: str
    """The sign between two cells."""
    decimal: str
    """The sign in numbers."""


def opened(path: Path) -> TextIO:
    """The text of a file, unpacked."""
    unpacked: Any = gzip.open if path.suffix.lower() == ".gz" else open
    file: TextIO = unpacked(path, "rt", encoding="utf-8-sig")
    return file


def form_of_text(file: TextIO, decimal: str | None, may_group: bool = False) -> TextForm:
    """The form of the rows of a file, from its first lines, the names first.

    decimal, may_group: as in `tables`. InputError: the first line has no names, or as
    `decimal_sign`.
    """
    first, more = file.readline(), file.read(SEEN)
    if first.lower().startswith("sep=") or first.startswith("#"):
        message = f"the first line is `{cut_off(first.strip())}`"
        raise InputError(message, fixes="remove this line")
    lines = (first, more.partition("\n")[0])  # names may hold another sign
    separator = max(",;\t|", key=lambda sign: min(line.count(sign) for line in lines))
    if len(more) == SEEN:  # the last cell may be cut off
        end = max(more.rfind("\n"), more.rfind(separator))
        more = more[:end]
    return TextForm(separator, decimal_sign(more, separator, decimal, may_group))


def tables_of_text(
    path: Path,
    rows: int | None,
    decimal: str | None,
    may_group: bool,
    has_names: Callable[[str], bool],
) -> Iterator[pd.DataFrame]:
    """The table in a file, or tables of some `rows` of it; arguments as in `tables`."""
    import pandas as pd

    if rows is None:
        check_text(path)
    with opened(path) as file:
        form = form_of_text(file, decimal, may_group)
    options: dict[str, Any] = {
        "sep": form.separator,
        "decimal": "." if form.separator == "," else form.decimal,
        "index_col": False,
        "low_memory": False,
        "skipinitialspace": True,
    }
    with warnings.catch_warnings(), _refused_by_row(path, form.separator):
        # pandas would drop the rest of rows that are longer than the header.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        written = _written_names(path, options)
        of_names = [name for name in written if has_names(str(name).strip())]
        options["dtype"] = dict.fromkeys(of_names, str)
        if form.separator == form.decimal:  # dots group digits, which pandas takes for decimals
            options["dtype"] = str
        parts: Any = pd.read_csv(path, chunksize=rows, **ONLY_EMPTY, **options)
        spellings: dict[str, dict[float, str]] = {name: {} for name in of_names}
        # Beside commas between cells, digits are grouped only if the person names the sign.
        is_grouped = form.separator != "," or form.decimal == decimal
        for table in [parts] if rows is None else parts:
            table.columns = pd.Index(_with_written_names(table.columns, written))
            changed = {}
            for name in of_names:
                if written.count(name) == 1:  # a name that occurs twice is refused later
                    column = table[name]
                    changed[name] = plain_names(column, options["decimal"], spellings[name])
            plain = ungrouped(table, form.decimal) if is_grouped else table
            yield plain.assign(**changed)


def _written_names(path: Path, options: dict[str, Any]) -> list[Any]:
    """The names of the columns as the file writes them.

    pandas gives new names to names that occur twice, and to columns without a name.
    """
    import pandas as pd

    first_row: dict[str, Any] = {**options, "header": None, "nrows": 1, "dtype": str}
    return list(pd.read_csv(path, keep_default_na=False, **first_row).iloc[0])


def _with_written_names(made: Any, written: list[Any]) -> list[Any]:
    """The names as written, and pandas' own name where there is none."""
    names = []
    for written_name, made_name in zip(written, made, strict=True):
        names.append(written_name if str(written_name).strip() else made_name)
    return names


@contextmanager
def _refused_by_row(path: Path, separator: str) -> Iterator[None]:
    """Say which row pandas cannot read: one of more cells than names, or of an open quote."""
    import pandas as pd

    try:
        yield
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        last_row = _check_cells(path, separator)
        if "EOF inside string" not in str(error):  # pandas' words for an open quote
            raise
        # The last row then holds all lines that follow.
        is_in_names = last_row < 0
        message = "a quotation mark that nothing closes"
        message += " in the line of names" if is_in_names else ""
        fixes = ["close it at the end of its cell", "remove it"]
        row = None if is_in_names else last_row
        raise InputError(message, row=row, fixes=fixes) from error


def _check_cells(path: Path, separator: str) -> int:
    """The number of the last row; -1: there is none. InputError: a row has too many cells."""
    limit = csv.field_size_limit()
    csv.field_size_limit(LONGEST_CELL)
    try:
        with opened(path) as file:
            # pandas leaves out empty lines, lines of spaces, and empty cells at a row's end.
            lines = (line for line in file if line.strip(" \n"))
            rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
            n_names = len(next(rows))
            row = -1
            for row, cells in enumerate(rows):
                if any(cells[n_names:]):
                    sign = "a tab" if separator == "\t" else f"`{separator}`"
                    message = f"{len(cells)} cells, while the line of names has {n_names},"
                    fixes = ["name each column", f"put quotes around a cell with {sign}"]
                    raise InputError(message, row=row, fixes=fixes) from None
            return row
    finally:
        csv.field_size_limit(limit)
