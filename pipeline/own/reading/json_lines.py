"""JSON lines as a table: one object per line, each name once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utility_calibration.metrics.errors import InputError, reason_of

from ..words.forms import LINE_BY_LINE
from ..words.message_text import cut_off
from .table_memory import check_text
from .text_tables import opened

if TYPE_CHECKING:
    import pandas as pd


def table_of_lines(path: Path) -> pd.DataFrame:
    """The objects of a file as the rows of a table; InputError: a line is no object."""
    import pandas as pd

    check_text(path)
    rows = list[dict[str, Any]]()
    with opened(path) as file:
        for line in filter(str.strip, file):
            if not rows and line.lstrip().startswith("["):
                raise InputError("an array of JSON", fixes=LINE_BY_LINE)
            rows.append(_of_line(line, len(rows)))
    return pd.DataFrame(rows)


def _of_line(line: str, row: int) -> dict[str, Any]:
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
