"""How much memory a table takes while it is read, from counts, before it is read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.archive import LARGEST_ARRAY
from utility_calibration.metrics.errors import InputError

from ..words.forms import LINES, ending_of

LARGEST_TABLE = 2 << 30
"""Bytes that the cells of a table may take while they are read."""
PER_CELL = 16
"""Bytes that a cell with a number takes then."""
PER_TEXT = 64
"""Bytes that a cell with text, or any cell of JSON lines, takes then."""
BLOCK = 1 << 20
"""Bytes of a file of text that are counted at a time."""
SEPARATORS = (b",", b";", b"\t", b"\n")


def check_memory(n_cells: int, size: int) -> None:
    """Refuse a table, before it is read, whose cells take too much memory, `size` bytes."""
    if size > LARGEST_TABLE:
        message = f"{n_cells:,} cells take {size:,} bytes or more while they are read"
        message += f", the limit is {LARGEST_TABLE:,}"
        raise InputError(message, fixes=["give fewer cases", "give an npz"])


def check_text(path: Path) -> None:
    """Refuse a file of text that is too large; pandas would take any amount of memory for it."""
    unpacked: Any = gzip.open if path.suffix.lower() == ".gz" else open
    per_cell = PER_TEXT if ending_of(path) in LINES else PER_CELL
    size, n_cells = 0, 0
    with unpacked(path, "rb") as file:
        while True:
            block = file.read(BLOCK)
            if not block:
                return
            size += len(block)
            # Signs within quotes count, too, so this is an upper bound.
            n_cells += sum(block.count(sign) for sign in SEPARATORS)
            check_memory(n_cells, n_cells * per_cell)
            if size > LARGEST_ARRAY:
                message = f"more than {LARGEST_ARRAY:,} bytes of text"
                raise InputError(message, fixes="save it as npz")


def parquet_size(path: Path) -> tuple[int, int]:
    """The number of cells of a table in parquet, and the bytes that they take while it is read.

    A text that is repeated takes next to nothing in the file.
    """
    metadata = require("pyarrow.parquet").read_metadata(path)
    n_cells, size = 0, 0
    for group_number in range(metadata.num_row_groups):
        group = metadata.row_group(group_number)
        for place in range(metadata.num_columns):
            part = group.column(place)
            n_cells += part.num_values  # of lists more than rows
            is_text = "BYTE_ARRAY" in part.physical_type
            size += part.num_values * (PER_TEXT if is_text else PER_CELL)
    return n_cells, size
