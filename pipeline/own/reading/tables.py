"""Tables in files: CSV, TSV, JSON lines, parquet, and what `datasets` saves; whole or by parts.

pandas and `datasets` read them. What would take too much memory is refused from counts, before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, MissingResource, reason_of

from ..words.forms import LINE_BY_LINE, LINES, ending_of
from ..words.message_text import cut_off, is_plain, normal, some_of
from ..words.usual_names import LABELS, spelt
from .table_memory import check_memory, check_text, parquet_size
from .text_tables import opened, tables_of_text

if TYPE_CHECKING:
    import pandas as pd


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
    kind = ending_of(path).removeprefix(".")
    form = "text in UTF-8 with a line of names"
    try:
        if path.is_dir():
            kind, form = "a data set", "a folder of save_to_disk"
            yield named(_numbered_names(require("datasets").load_from_disk(str(path))))
        elif kind == "parquet":
            form = kind
            yield from map(named, _of_parquet(path, rows))
        elif ending_of(path) in LINES:
            form = "text in UTF-8 with one object per line"
            yield named(_of_json_lines(path), "give one object per line, one line per case")
        else:
            yield from map(named, tables_of_text(path, rows, decimal, may_group, has_names))
    except (InputError, MissingResource):
        raise
    except Exception as error:  # pandas and Arrow raise many kinds for damaged files
        message = f"not readable as {kind}: {form} ({reason_of(error)})"
        raise InputError(message, fixes="export it again") from error


def named(
    table: pd.DataFrame, fix: str = "give a line of names, and one row per case"
) -> pd.DataFrame:
    """A table of at least one row whose columns have distinct names of printable text.

    fix: what to do about a file without rows.
    """
    import pandas as pd

    if table.empty:
        raise InputError("no rows", fixes=[fix, "remove the file if others have the cases"])
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


def _numbered_names(data: Any) -> pd.DataFrame:
    """A data set as a table; class numbers become the names that it has for them, in order."""
    import pandas as pd

    table: pd.DataFrame = data.to_pandas()
    # A `ClassLabel` knows the names of its numbers; -1 is the code of pandas for a gap.
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
        yield _plain_table(pd.read_parquet(path))
        return
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(rows):
            yield _plain_table(batch.to_pandas())


def _plain_table(table: pd.DataFrame) -> pd.DataFrame:
    """Labels as a column if they are in the index, and text in place of categories.

    The codes of categories would be another order of the classes.
    """
    in_index = [name for name in table.index.names if spelt(str(name)) in LABELS]
    if in_index and not any(spelt(str(name)) in LABELS for name in table):
        table = table.reset_index(in_index)
    return table.astype({name: object for name in table if hasattr(table[name], "cat")})


def _of_json_lines(path: Path) -> pd.DataFrame:
    """The objects of a file as the rows of a table; InputError: a line is no object."""
    import pandas as pd

    check_text(path)
    rows = list[dict[str, Any]]()
    with opened(path) as file:
        for line in filter(str.strip, file):
            if not rows and line.lstrip().startswith("["):
                raise InputError("an array of JSON", fixes=LINE_BY_LINE)
            rows.append(_json_object(line, len(rows)))
    return pd.DataFrame(rows)


def _json_object(line: str, row: int) -> dict[str, Any]:
    """The object of a line of JSON."""

    def with_each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)  # Python's reader would keep the last of two entries of one name
        if len(entries) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = cut_off(counts.most_common(1)[0][0])
            raise InputError("two entries", row=row, column=twice, fixes="rename one of them")
        return entries

    try:
        value = json.loads(line, object_pairs_hook=with_each_name_once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        reason = reason_of(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg}, letter {min(error.pos, len(line.rstrip())) + 1}"
        fixes = ["correct it", LINE_BY_LINE]
        raise InputError(f"broken JSON ({reason})", row=row, fixes=fixes) from error
    if not isinstance(value, dict):
        raise InputError("JSON that is no object", row=row, fixes=LINE_BY_LINE)
    return value
