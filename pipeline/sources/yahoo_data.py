"""The rows of the Yahoo Answers topics test set: texts, and classes by number or by name."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.sources.class_names import YAHOO
from pipeline.sources.result import MissingResource, reason_of


def parquet_files(data: str | Path) -> list[Path]:
    """The file itself, or the test split's files in a folder."""
    place = Path(data).expanduser()
    return [place] if place.is_file() else sorted(place.rglob("test-*.parquet"))


def read_rows(
    place: Path,
    fields: Sequence[str],
    separator: str,
    label_field: str,
    first_label: int,
    expected_rows: int | None,
    skip: bool,
) -> tuple[list[str], list[int], list[str]]:
    """Texts, classes in [0, 10), and the names of rows that were left out, of the test split.

    Args: those of conf/benchmark/yahoo.yaml; `skip` leaves out rows without a class.
    """
    files = parquet_files(place)
    if not files:
        raise MissingResource(
            f"Yahoo Answers: {place} holds no parquet file of the test split: put "
            "test-00000-of-00001.parquet of community-datasets/yahoo_answers_topics there"
        )
    table, named = _read(files, [*fields, label_field])
    for name in fields:
        kinds = {type(value).__name__ for value in table[name] if not isinstance(value, str | None)}
        if kinds:
            raise InputError(
                f"{files[0]}: {name}: holds {', '.join(sorted(kinds))}, not text; correct "
                "benchmark.source.fields"
            )
    texts = [separator.join(filter(None, row)) for row in zip(*(table[name] for name in fields))]
    if expected_rows not in (None, len(texts)):
        raise InputError(
            f"{files[0]}: {len(texts)} rows, expected {expected_rows}; give the "
            "test split, or set benchmark.source.expected_rows=null"
        )
    classes = _classes(table[label_field], named, first_label, f"{files[0]}: {label_field}")
    missing = [f"row {row}" for row, number in enumerate(classes) if number is None]
    if missing and not skip:
        raise InputError(
            f"{files[0]}: {len(missing)} rows have no {label_field} (first: {missing[0]}); "
            "set benchmark.source.on_error=skip to leave them out"
        )
    kept = [(text, number) for text, number in zip(texts, classes) if number is not None]
    if not kept:
        raise InputError(f"{files[0]}: no row has a {label_field}")
    return [text for text, _ in kept], [number for _, number in kept], missing


def _read(files: Sequence[Path], wanted: Sequence[str]) -> tuple[dict[str, list[Any]], list[str]]:
    """The columns by name, and the names of the classes that the file itself holds, if any."""
    parquet = require("pyarrow.parquet", "pyarrow")
    held: dict[str, list[Any]] = {name: [] for name in wanted}
    for file in files:
        try:
            table = parquet.ParquetFile(file).read()
        except Exception as error:  # pyarrow raises errors of many kinds at damaged bytes
            raise InputError(
                f"{file}: no parquet file with the fields {', '.join(wanted)} "
                f"({reason_of(error)}); correct sources.yahoo_data, or download it again"
            ) from error
        if absent := [name for name in wanted if name not in table.column_names]:
            raise InputError(
                f"{file}: no column {', '.join(absent)}; it has {', '.join(table.column_names)}; "
                "set benchmark.source.fields or benchmark.source.label_field"
            )
        for name in wanted:
            held[name] += table[name].to_pylist()
    metadata = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = metadata.get("info", {}).get("features", {})
    return held, list(features.get(wanted[-1], {}).get("names") or [])


def _classes(
    values: Sequence[Any], named: Sequence[str], first_label: int, place: str
) -> list[int | None]:
    """The class of each row, in the order of YAHOO; None where the row has none."""
    known = {plain(name): number for number, name in enumerate(YAHOO)}
    if any(isinstance(value, str) for value in values):
        keys = [plain(str(value)) if value not in (None, "") else None for value in values]
        if unknown := {str(v) for v, key in zip(values, keys) if key not in (None, *known)}:
            raise InputError(
                f"{place}: {', '.join(sorted(unknown)[:3])}: no topic of Yahoo Answers; correct "
                "benchmark.source.label_field"
            )
        return [None if key is None else known[key] for key in keys]
    numbers = [None if v is None or v != v else v - first_label for v in values]
    if wrong := [n for n in numbers if n is not None and n not in range(len(YAHOO))]:
        there = [value for value in values if value is not None]
        raise InputError(
            f"{place}: goes from {min(there)} to {max(there)}, expected {first_label} to "
            f"{first_label + len(YAHOO) - 1} ({len(wrong)} rows are outside); set "
            "benchmark.source.first_label=1 where classes count from 1, or label_field"
        )
    # The file may number the topics in another order, and then says so.
    order = [known.get(plain(name)) for name in named] or list(range(len(YAHOO)))
    if sorted(order, key=str) != sorted(range(len(YAHOO)), key=str):
        raise InputError(f"{place}: its classes are {', '.join(named)}, not Yahoo Answers' ten")
    return [None if number is None else order[int(number)] for number in numbers]


def plain(name: str) -> str:
    """A label without case, spaces and punctuation: `Society & Culture` = `society_and_culture`."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("&", "and"))
