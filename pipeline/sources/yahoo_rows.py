"""The rows of the Yahoo Answers topics test set: texts and classes from its parquet files."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, MissingResource, naming, reason_of

from ..scoring.class_names import YAHOO

Columns = dict[str, list[Any]]
N_CLASSES = len(YAHOO)


def parquet_files(data: str | Path) -> list[Path]:
    """The file itself, or the test split's files in a folder."""
    place = Path(data).expanduser()
    return [place] if place.is_file() else sorted(place.rglob("test-*.parquet"))


class Questions(NamedTuple):
    """The rows that have a class, and the others by name."""

    texts: list[str]
    classes: list[int]
    """In [0, 10), of each text."""
    without_class: list[str]
    """`row 7`, …: the rows that are left out for want of a class."""

    def part(self, rows: NDArray[np.intp]) -> tuple[list[str], list[int]]:
        """Texts and classes of some rows."""
        return [self.texts[row] for row in rows], [self.classes[row] for row in rows]

    def check_classes(self, place: Path, label_field: str) -> None:
        """Raise `InputError` if some row has no class."""
        if self.without_class:
            n_rows, first = len(self.without_class), self.without_class[0]
            message = f"{n_rows} rows have no {label_field} (first: {first})"
            fix = "set benchmark.source.on_error=skip to leave them out"
            raise InputError(message, file=place, fixes=fix)


def read_rows(
    place: Path,
    fields: Sequence[str],
    separator: str,
    label_field: str,
    first_label: int,
    expected_rows: int | None,
) -> Questions:
    """The questions in a parquet file, or in those of the test split in a folder.

    Args:
        place: the file or folder.
        fields: the columns whose texts are joined; gaps are left out.
        separator: what stands between two texts.
        label_field: the column of the classes.
        first_label: the number of the first class, where classes are numbers.
        expected_rows: how many rows there must be; None: any number.

    Raises:
        MissingResource: there is no such file.
        InputError: a column is absent or holds something else, or the rows are not so many.
    """
    files = parquet_files(place)
    if not files:
        raise MissingResource(
            f"Yahoo Answers: {place} holds no parquet file of the test split: put "
            "test-00000-of-00001.parquet of community-datasets/yahoo_answers_topics there"
        )
    table, file_names = _read(files, [*fields, label_field])
    _check_text(table, fields, files[0])
    n_rows = len(table[label_field])
    if expected_rows not in (None, n_rows):
        fix = "give the test split, or set benchmark.source.expected_rows=null"
        message = f"{n_rows} rows, expected {expected_rows}"
        raise InputError(message, file=files[0], fixes=fix)
    with naming(files[0]):
        classes = _classes(table[label_field], file_names, first_label, label_field)
    questions = Questions([], [], [])
    for row, number in enumerate(classes):
        if number is None:
            questions.without_class.append(f"row {row}")
            continue
        parts = [table[name][row] for name in fields]
        questions.texts.append(separator.join(part for part in parts if part))
        questions.classes.append(number)
    if not questions.texts:
        raise InputError(f"no row has a {label_field}", file=files[0])
    return questions


def _check_text(table: Columns, fields: Sequence[str], file: Path) -> None:
    """Raise `InputError` if a field holds anything but texts and gaps."""
    for name in fields:
        others = [value for value in table[name] if not isinstance(value, str | None)]
        kinds = {type(value).__name__ for value in others}
        if kinds:
            message = f"holds {', '.join(sorted(kinds))}, not text"
            fix = "correct benchmark.source.fields"
            raise InputError(message, field=name, file=file, fixes=fix)


def _read(files: Sequence[Path], wanted: Sequence[str]) -> tuple[Columns, list[str]]:
    """The columns by name, and the file's own names of the classes, if it has any.

    The last of the `wanted` columns is that of the classes.
    """
    parquet = require("pyarrow.parquet", "pyarrow")
    columns: Columns = {name: [] for name in wanted}
    for file in files:
        try:
            table = parquet.ParquetFile(file).read()
        except Exception as error:  # pyarrow raises errors of many kinds at damaged bytes
            message = f"no parquet file with the fields {', '.join(wanted)} ({reason_of(error)})"
            fix = "correct sources.yahoo_data, or download it again"
            raise InputError(message, file=file, fixes=fix) from error
        absent = [name for name in wanted if name not in table.column_names]
        if absent:
            message = f"no column {', '.join(absent)}; it has {', '.join(table.column_names)}"
            fix = "set benchmark.source.fields or benchmark.source.label_field"
            raise InputError(message, file=file, fixes=fix)
        for name in wanted:
            columns[name] += table[name].to_pylist()
    # The library `datasets` writes the names of the classes beside the columns.
    metadata = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = metadata.get("info", {}).get("features", {})
    names = features.get(wanted[-1], {}).get("names")
    return columns, list(names or [])


def _classes(
    values: Sequence[Any], file_names: Sequence[str], first_label: int, field: str
) -> list[int | None]:
    """The class of each row, in the order of YAHOO; None where the row has none.

    Args:
        values: for each row the name of its class, or its number, or a gap.
        file_names: the names of the numbers, in the file's order, if it has any.
        first_label: the number of the first class.
        field: the column, for messages.
    """
    if any(isinstance(value, str) for value in values):
        return _classes_of_names(values, field)
    return _classes_of_numbers(values, file_names, first_label, field)


def _classes_of_names(values: Sequence[Any], field: str) -> list[int | None]:
    classes: list[int | None] = []
    unknown = set()
    for value in values:
        if value in (None, ""):
            classes.append(None)
            continue
        number = CLASS_OF.get(plain(str(value)))
        if number is None:
            unknown.add(str(value))
        classes.append(number)
    if unknown:
        message = f"{', '.join(sorted(unknown)[:3])}: no topic of Yahoo Answers"
        fix = "correct benchmark.source.label_field"
        raise InputError(message, field=field, fixes=fix)
    return classes


def _classes_of_numbers(
    values: Sequence[Any], file_names: Sequence[str], first_label: int, field: str
) -> list[int | None]:
    numbers = [value for value in values if not _is_gap(value)]
    outside = [number for number in numbers if number - first_label not in range(N_CLASSES)]
    if outside:
        raise InputError(
            f"goes from {min(numbers)} to {max(numbers)}, expected {first_label} to "
            f"{first_label + N_CLASSES - 1} ({len(outside)} rows are outside)",
            field=field,
            fixes="set benchmark.source.first_label=1 where classes count from 1, or label_field",
        )
    # The file may number the topics in another order, and then says so.
    order = list(range(N_CLASSES))
    if file_names:
        keys = [plain(name) for name in file_names]
        if sorted(keys) != sorted(CLASS_OF):
            message = f"its classes are {', '.join(file_names)}, not Yahoo Answers' ten"
            raise InputError(message, field=field)
        order = [CLASS_OF[key] for key in keys]

    def class_of(value: Any) -> int | None:
        return None if _is_gap(value) else order[int(value) - first_label]

    return [class_of(value) for value in values]


def _is_gap(value: Any) -> bool:
    """Whether a row has no class: nothing, or NaN, which alone does not equal itself."""
    return value is None or value != value


def plain(name: str) -> str:
    """A label without case, spaces and punctuation: `Society & Culture` = `society_and_culture`."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("&", "and"))


CLASS_OF = {plain(name): number for number, name in enumerate(YAHOO)}
"""The number of each class by its name."""
