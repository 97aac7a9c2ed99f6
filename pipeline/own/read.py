"""Read a person's file: bytes become columns with names, or arrays with names.

Nothing is decided here about what they mean (`pipeline/own/assign.py`). pandas and `datasets` read
tables; an npz is checked before it is unpacked, and nothing is ever unpickled.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.archive import (
    LARGEST_ARRAY,
    array_headers,
    array_names,
    read_arrays,
)
from utility_calibration.metrics.errors import InputError, MissingResource, reason_of

from ..harness.artifacts import sha256_of, sha256_of_json
from .cells import LONGEST_TEXT, Held
from .choices import Choices
from .places import SAVEZ, no_answers
from .told import cut_off, is_plain, naming, normal, some_of

if TYPE_CHECKING:
    import pandas as pd

LINES = (".jsonl", ".ndjson")
TABLES = (".csv", ".tsv", *LINES, ".parquet")
"""Endings of file names that are read as tables; each may be followed by .gz but parquet."""
SAVED = "state.json"  # a file in every folder that `datasets` saves with save_to_disk
READ = "npz, CSV, TSV, JSON lines or parquet"
SAVE = "copy it again if it was cut, save it with numpy.savez, or name a table of text .csv"
LINE_BY_LINE = (
    "write one object per line: "
    "pandas.read_json(…).to_json('my.jsonl', orient='records', lines=True)"
)
INSTEAD = {
    (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt"): "a pickle, which is never loaded; "
    f"save its arrays: {SAVEZ}",
    (".xlsx", ".xls", ".ods"): "a workbook; save the sheet as «CSV UTF-8»",
    (".json",): "not read; " + LINE_BY_LINE,
    (".zip", ".bz2", ".xz", ".zst", ".tar"): "not read; unpack it, or pack it with gzip (.csv.gz)",
    (".npy",): f"a single array; save labels, too: {SAVEZ}",
}
"""What files are that are not read, and what to do instead, by their endings."""
LARGEST_TABLE = 2 << 30  # bytes that the cells of a table may take while they are read
PER_NUMBER = {False: 16, True: 64}  # bytes for each cell of a table; True: of JSON lines
LARGE = 1 << 26  # bytes of an array up to which nothing is refused by its header
DECIMAL_COMMA = re.compile(r"(^|[;|\t])[ \"]*[+-]?\d*,\d+(e[+-]?\d+)?[ \"]*([;|\t]|$)", re.I | re.M)
"""A cell such as 0,25 between two separators that are no commas."""


def ending_of(path: Path) -> str:
    """The ending that says how to read a file: .csv for a.CSV and a.csv.gz."""
    endings = [end.lower() for end in path.suffixes]
    return endings[-2] if len(endings) > 1 and endings[-1] == ".gz" else "".join(endings[-1:])


def is_table(path: Path) -> bool:
    """Whether a file (or a folder that `datasets` saved) is read as a table."""
    return path.is_dir() or ending_of(path) in TABLES


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the data in a folder that `datasets` saved."""
    if path.is_file():
        return sha256_of(path)
    return sha256_of_json({file.name: sha256_of(file) for file in sorted(path.glob("*.arrow"))})


def check_is_file(path: Path, wanted: str) -> None:
    """Raise an error of one line unless `path` is a file that may be read; `wanted` says which."""
    if path.is_dir():
        raise InputError("this is a folder", file=path, fixes=f"give the path of {wanted}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")
    for endings, instead in INSTEAD.items():
        if ending_of(path) in endings:
            told, _, fix = instead.partition("; ")
            raise InputError(told, file=path, fixes=fix)


def check_is_given(path: Path) -> None:
    """Raise an error of one line unless `path` is a file, or a data set saved by `datasets`."""
    if (path / "dataset_dict.json").is_file():
        raise InputError("several data sets", file=path, fixes="give the folder of one of them")
    if not (path / SAVED).is_file():
        check_is_file(path, f"a file: {READ}, or a folder saved by datasets")


def read(path: Path, choices: Choices, is_used: Callable[[str], bool]) -> Held:
    """The columns of the table in a file, or the arrays of an npz whose names `is_used`."""
    check_is_given(path)
    if is_table(path):
        return {str(name): column for name, column in read_table(path).items()}
    if ending_of(path) not in ("", ".npz"):
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                raise InputError(f"{ending_of(path)} is not read", file=path, fixes=f"give {READ}")
    names = array_names(path)
    matrices = [*choices.kinds_of(names)]
    if {"indptr", "format", "shape"} <= set(names):
        fix = f"save matrix.toarray(): {SAVEZ}"
        raise InputError("a sparse matrix", file=path, fixes=fix)
    if not matrices:
        raise no_answers(names).in_file(path)
    used = [*matrices, *filter(is_used, names)]
    _check_headers(path, used, matrices)
    return read_arrays(path, only=used, fix=SAVE, mapped=matrices)


def _check_headers(path: Path, used: Sequence[str], matrices: Sequence[str]) -> None:
    """Refuse large arrays that cannot belong to the matrix, or long text, before they are read."""
    headers = array_headers(path, only=used, fix=SAVE)
    n = headers[matrices[0]].shape[:1]
    for name, held in headers.items():
        size = math.prod(held.shape) * held.dtype.itemsize
        if name in matrices or size <= LARGE:
            continue
        if held.shape[:1] != n or held.dtype.itemsize > 4 * LONGEST_TEXT:
            told = f"shape {list(held.shape)} of {held.dtype}, {size:,} bytes, beside {n} rows"
            raise InputError(told, field=name, file=path, fixes="give one short entry per row")


def read_table(path: Path) -> pd.DataFrame:
    """The table in a file, at least one row; names are printable text without spaces around it."""
    with naming(path):
        return named(_table(path))


def named(table: pd.DataFrame) -> pd.DataFrame:
    """A table of at least one row whose columns have distinct names of printable text."""
    import pandas as pd

    if table.empty:
        raise InputError("no rows", fixes="give a line of names, and one row per point")
    table.columns = pd.Index([normal(str(name).strip()) for name in table.columns])
    names = list(table.columns)
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        told = f"{some_of(twice)}: more than one column of this name"
        raise InputError(told, field="columns", fixes="rename them")
    for place, name in enumerate(names, 1):
        if not is_plain(name):
            told = f"control characters in the name of column {place}"
            raise InputError(told, field="columns", fixes="rename it")
    return table


def _table(path: Path) -> pd.DataFrame:
    kind, form = ending_of(path).removeprefix("."), "text in UTF-8 with a line of names"
    try:
        if path.is_dir():
            kind, form = "a data set", "a folder of save_to_disk"
            return _numbered_names(require("datasets").load_from_disk(str(path)))
        if kind == "parquet":
            form = kind
            return _read_parquet(path)
        return _read_lines(path) if ending_of(path) in LINES else _read_separated(path)
    except (InputError, MissingResource):
        raise
    except Exception as error:  # pandas and Arrow raise many kinds for damaged files
        told = f"not readable as {kind}: {form} ({reason_of(error)})"
        raise InputError(told, fixes="export it again") from error


def check_memory(numbers: int, each: int) -> None:
    """Refuse a table before it is read whose `numbers` take too much memory, at `each` bytes."""
    if numbers * each > LARGEST_TABLE:
        told = f"{numbers:,} cells take {numbers * each:,} bytes or more while they are read"
        told += f", the limit is {LARGEST_TABLE:,}"
        raise InputError(told, fixes=["give fewer rows", "give an npz"])


def _opened(path: Path, is_whole: bool = True) -> TextIO:
    """The text of a file, unpacked; pandas would take any amount of memory for a whole one."""
    unpacked: Any = gzip.open if path.suffix.lower() == ".gz" else open
    size, cells = 0, 0
    with unpacked(path, "rb") as held:
        while is_whole and (block := held.read(1 << 20)):
            size, cells = (
                size + len(block),
                cells + sum(map(block.count, (b",", b";", b"\t", b"\n"))),
            )
            check_memory(cells, PER_NUMBER[ending_of(path) in LINES])
            if size > LARGEST_ARRAY:
                told = f"more than {LARGEST_ARRAY:,} bytes of text"
                raise InputError(told, fixes="save it as npz")
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


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    check_memory(parquet_cells(path), PER_NUMBER[False])
    return without_categories(pd.read_parquet(path))


def parquet_cells(path: Path) -> int:
    """The number of cells of a table in parquet."""
    import pyarrow.parquet

    size = pyarrow.parquet.read_metadata(path)
    return int(size.num_rows * size.num_columns)


def without_categories(table: pd.DataFrame) -> pd.DataFrame:
    """A table as `read` gives it: text in place of categories."""
    return table.astype({name: object for name in table if hasattr(table[name], "cat")})


def _read_lines(path: Path) -> pd.DataFrame:
    import pandas as pd

    def each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)  # Python's reader would keep the last of two entries of one name
        if len(entries) < len(pairs):
            names = [name for name, _ in pairs]
            twice = cut_off(next(name for name in names if names.count(name) > 1))
            raise InputError("two entries in a line", column=twice, fixes="rename one of them")
        return entries

    rows: list[Any] = []
    with _opened(path) as file:
        for line in filter(str.strip, file):
            if not rows and line.lstrip().startswith("["):
                raise InputError("an array of JSON", fixes=LINE_BY_LINE)
            rows.append(json.loads(line, object_pairs_hook=each_name_once))
    return pd.DataFrame(rows)


def _read_separated(path: Path) -> pd.DataFrame:
    (table,) = separated(path, None)
    return table


def separated(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    """The table in a file, or tables of some `rows` of it."""
    import pandas as pd

    with _opened(path, is_whole=rows is None) as file:
        first, more = file.readline(), file.read(1 << 20)
    if first.lower().startswith("sep=") or first.startswith("#"):
        told = f"the first line is `{cut_off(first.strip())}`"
        raise InputError(told, fixes="remove this line")
    lines = (first, more.partition("\n")[0])  # names may hold another sign
    separator = max(",;\t|", key=lambda sign: min(line.count(sign) for line in lines))
    options: dict[str, Any] = {
        "sep": separator,
        "decimal": "," if separator != "," and DECIMAL_COMMA.search(more) else ".",
        "index_col": False,
        "low_memory": False,
        "skipinitialspace": True,
    }
    with warnings.catch_warnings():
        # pandas would drop the rest of rows that are longer than the header.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # "NA" and "null" may be names of classes; a column of numbers refuses them as text.
        # pandas gives new names to names that occur twice, and to columns without a name.
        names = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options)
        read: Any = pd.read_csv(
            path, keep_default_na=False, na_values=[""], chunksize=rows, **options
        )
        for table in [read] if rows is None else read:
            pairs = zip(names.iloc[0], table.columns, strict=True)
            table.columns = pd.Index(
                [given if str(given).strip() else made for given, made in pairs]
            )
            yield table
