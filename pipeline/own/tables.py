"""Tables in files: CSV, TSV, JSON lines, parquet, and what `datasets` saves; whole or by parts.

pandas and `datasets` read them. What would take too much memory is refused from counts, before.
"""

from __future__ import annotations

import csv
import gzip
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.archive import LARGEST_ARRAY
from utility_calibration.metrics.errors import InputError, MissingResource, reason_of

from .decimals import decimal_sign, ungrouped
from .forms import LINE_BY_LINE, LINES, ending_of
from .message_text import cut_off, is_plain, normal, some_of
from .spelling import plain_names

if TYPE_CHECKING:
    import pandas as pd

LARGEST_TABLE = 2 << 30  # bytes that the cells of a table may take while they are read
SEEN = 1 << 20  # letters that show the signs between cells and in numbers
LONGEST_CELL = 2**31 - 1  # letters
PER_CELL, PER_TEXT = 16, 64  # bytes that a cell takes then: of numbers, and of text or JSON lines


def tables(
    path: Path,
    rows: int | None = None,
    decimal: str | None = None,
    may_group: bool = False,
    has_names: Callable[[str], bool] = lambda column: False,
) -> Iterator[pd.DataFrame]:
    """The table in a file, or tables of some `rows` of it, where the form is one of PARTED.

    Each has at least one row, and names that are printable text without spaces around it.

    Args:
        path: the file.
        rows: the number of rows of each table; None: all.
        decimal: the sign that the person names.
        may_group: as in decimals.py.
        has_names: whether the entries of a column are names, such as labels (spelling.py).
    """
    kind, form = ending_of(path).removeprefix("."), "text in UTF-8 with a line of names"
    try:
        if path.is_dir():
            kind, form = "a data set", "a folder of save_to_disk"
            yield named(_numbered_names(require("datasets").load_from_disk(str(path))))
        elif kind == "parquet":
            form = kind
            yield from map(named, _of_parquet(path, rows))
        elif ending_of(path) in LINES:
            form = "text in UTF-8 with one object per line"
            yield named(_of_lines(path), "give one object per line, one line per point")
        else:
            yield from map(named, _separated(path, rows, decimal, may_group, has_names))
    except (InputError, MissingResource):
        raise
    except Exception as error:  # pandas and Arrow raise many kinds for damaged files
        message = f"not readable as {kind}: {form} ({reason_of(error)})"
        raise InputError(message, fixes="export it again") from error


def named(
    table: pd.DataFrame, fix: str = "give a line of names, and one row per point"
) -> pd.DataFrame:
    """A table of at least one row whose columns have distinct names of printable text.

    fix: what to do about a file without rows.
    """
    import pandas as pd

    if table.empty:
        raise InputError("no rows", fixes=fix)
    table.columns = pd.Index([normal(str(name).strip()) for name in table.columns])
    names = list(table.columns)
    twice = table.columns[table.columns.duplicated()].unique().tolist()
    if twice:
        message = f"{some_of(twice)}: more than one column of this name"
        raise InputError(message, field="columns", fixes="rename them")
    for place, name in enumerate(names, 1):
        if not is_plain(name):
            message = f"control characters in the name of column {place}"
            raise InputError(message, field="columns", fixes="rename it")
    return table


def check_memory(cells: int, size: int) -> None:
    """Refuse a table, before it is read, whose cells take too much memory, `size` bytes."""
    if size > LARGEST_TABLE:
        message = f"{cells:,} cells take {size:,} bytes or more while they are read"
        message += f", the limit is {LARGEST_TABLE:,}"
        raise InputError(message, fixes=["give fewer rows", "give an npz"])


def _opened(path: Path, is_whole: bool = True) -> TextIO:
    """The text of a file, unpacked; pandas would take any amount of memory for a whole one."""
    unpacked: Any = gzip.open if path.suffix.lower() == ".gz" else open
    size, cells = 0, 0
    each = PER_TEXT if ending_of(path) in LINES else PER_CELL
    with unpacked(path, "rb") as held:
        while is_whole and (block := held.read(1 << 20)):
            size += len(block)
            cells += sum(map(block.count, (b",", b";", b"\t", b"\n")))
            check_memory(cells, cells * each)
            if size > LARGEST_ARRAY:
                message = f"more than {LARGEST_ARRAY:,} bytes of text"
                raise InputError(message, fixes="save it as npz")
    file: TextIO = unpacked(path, "rt", encoding="utf-8-sig")
    return file


def _numbered_names(data: Any) -> pd.DataFrame:
    """A data set as a table; class numbers become the names that it has for them, in order."""
    import pandas as pd

    table: pd.DataFrame = data.to_pandas()
    for name, feature in data.features.items():
        if hasattr(feature, "int2str") and len(table):
            codes = table[name].fillna(-1).astype(int)
            table[name] = pd.Categorical.from_codes(codes, feature.names)
    return table


def _of_parquet(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    import pandas as pd

    parquet = require("pyarrow.parquet")
    if rows is None:
        check_memory(*parquet_size(path))
        yield _without_categories(pd.read_parquet(path))
        return
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(rows):
            yield _without_categories(batch.to_pandas())


def _without_categories(table: pd.DataFrame) -> pd.DataFrame:
    """Text in place of categories, whose codes would be another order of the classes."""
    return table.astype({name: object for name in table if hasattr(table[name], "cat")})


def parquet_size(path: Path) -> tuple[int, int]:
    """The number of cells of a table in parquet, and the bytes that they take while it is read.

    A text that is repeated takes next to nothing in the file.
    """
    held = require("pyarrow.parquet").read_metadata(path)
    groups = map(held.row_group, range(held.num_row_groups))
    parts = [group.column(place) for group in groups for place in range(held.num_columns)]
    each = [PER_TEXT if "BYTE_ARRAY" in part.physical_type else PER_CELL for part in parts]
    counts = [part.num_values for part in parts]  # of lists more than rows
    return sum(counts), sum(count * size for count, size in zip(counts, each, strict=True))


def _of_lines(path: Path) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []

    def each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)  # Python's reader would keep the last of two entries of one name
        if len(entries) < len(pairs):
            names = [name for name, _ in pairs]
            twice = cut_off(Counter(names).most_common(1)[0][0])
            message, fix = "two entries", "rename one of them"
            raise InputError(message, row=len(rows), column=twice, fixes=fix)
        return entries

    with _opened(path) as file:
        for line in filter(str.strip, file):
            if not rows and line.lstrip().startswith("["):
                raise InputError("an array of JSON", fixes=LINE_BY_LINE)
            rows.append(_of_line(line, len(rows), each_name_once))
    return pd.DataFrame(rows)


def _of_line(line: str, row: int, entries: Any) -> dict[str, Any]:
    """The object of a line of JSON, whose names and values `entries` makes a dictionary."""
    try:
        found = json.loads(line, object_pairs_hook=entries)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        message = reason_of(error)
        if isinstance(error, json.JSONDecodeError):
            message = f"{error.msg}, letter {min(error.pos, len(line.rstrip())) + 1}"
        raise InputError(
            f"broken JSON ({message})", row=row, fixes=["correct it", LINE_BY_LINE]
        ) from error
    if not isinstance(found, dict):
        raise InputError("JSON that is no object", row=row, fixes=LINE_BY_LINE)
    return found


class TextForm(NamedTuple):
    """The signs between two cells and in numbers of a file of text."""

    separator: str
    decimal: str


def form_of_text(file: TextIO, said: str | None, may_group: bool = False) -> TextForm:
    """The form of the rows of a file, from its first lines, the names first.

    said, may_group: as in `tables`. InputError: the first line has no names, or as `decimal_sign`.
    """
    first, more = file.readline(), file.read(SEEN)
    if first.lower().startswith("sep=") or first.startswith("#"):
        message = f"the first line is `{cut_off(first.strip())}`"
        raise InputError(message, fixes="remove this line")
    lines = (first, more.partition("\n")[0])  # names may hold another sign
    separator = max(",;\t|", key=lambda sign: min(line.count(sign) for line in lines))
    if len(more) == SEEN:  # the last cell may be cut off
        more = more[: max(map(more.rfind, ("\n", separator)))]
    return TextForm(separator, decimal_sign(more, separator, said, may_group))


def _separated(
    path: Path,
    rows: int | None,
    said: str | None,
    may_group: bool,
    has_names: Callable[[str], bool],
) -> Iterator[pd.DataFrame]:
    """The table in a file, or tables of some `rows` of it."""
    import pandas as pd

    with _opened(path, is_whole=rows is None) as file:
        separator, decimal = form_of_text(file, said, may_group)
    is_grouped = separator != "," or decimal == said
    options: dict[str, Any] = {
        "sep": separator,
        "decimal": "." if separator == "," else decimal,
        "index_col": False,
        "low_memory": False,
        "skipinitialspace": True,
    }
    with warnings.catch_warnings(), _told_by_row(path, separator):
        # pandas would drop the rest of rows that are longer than the header.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # "NA" and "null" may be names of classes; a column of numbers refuses them as text.
        # pandas gives new names to names that occur twice, and to columns without a name.
        first_row: dict[str, Any] = {**options, "header": None, "nrows": 1, "dtype": str}
        names = pd.read_csv(path, keep_default_na=False, **first_row)
        of_names = [name for name in names.iloc[0] if has_names(str(name).strip())]
        options["dtype"] = dict.fromkeys(of_names, str)
        if separator == decimal:  # dots group digits, which pandas would take for decimals
            options["dtype"] = str
        read: Any = pd.read_csv(
            path, keep_default_na=False, na_values=[""], chunksize=rows, **options
        )
        spellings: dict[str, dict[float, str]] = {name: {} for name in of_names}
        for table in [read] if rows is None else read:
            pairs = zip(names.iloc[0], table.columns, strict=True)
            table.columns = pd.Index(
                [written if str(written).strip() else made for written, made in pairs]
            )
            changed = {
                name: plain_names(table[name], options["decimal"], spellings[name])
                for name in of_names
                if names.iloc[0].eq(name).sum() == 1  # a name that occurs twice is refused later
            }
            if is_grouped:
                table = ungrouped(table, decimal)
            yield table.assign(**changed)


@contextmanager
def _told_by_row(path: Path, separator: str) -> Iterator[None]:
    """Say which row pandas cannot read: one of more cells than names, or of an open quote."""
    import pandas as pd

    try:
        yield
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        sign, shorter = "a tab" if separator == "\t" else f"`{separator}`", csv.field_size_limit()
        csv.field_size_limit(LONGEST_CELL)
        try:
            with _opened(path, is_whole=False) as file:
                # pandas leaves out empty lines, lines of spaces, and empty cells at a row's end.
                lines = (line for line in file if line.strip(" \n"))
                rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
                names, row = len(next(rows)), -1
                for row, cells in enumerate(rows):
                    if any(cells[names:]):
                        message = f"{len(cells)} cells, while the line of names has {names},"
                        fixes = ["name each column", f"put quotes around a cell with {sign}"]
                        raise InputError(message, row=row, fixes=fixes) from None
        finally:
            csv.field_size_limit(shorter)
        if "EOF inside string" in str(error):  # the last row then holds all lines that follow
            message = "a quotation mark that nothing closes"
            message += " in the line of names" if row < 0 else ""
            fixes = ["close it at the end of its cell", "remove it"]
            raise InputError(message, row=None if row < 0 else row, fixes=fixes) from error
        raise
