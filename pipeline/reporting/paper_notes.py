"""What is known of printed cells that stay apart: tested reasons, conjectures, oddities in print.

`paper_notes.csv` holds one line per cell, or per column of a table (method `*`). Cells without a
line are unexplained.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

NOTES = Path(__file__).with_name("paper_notes.csv")
UNEXPLAINED = "unexplained"


@cache
def _notes() -> dict[tuple[str, str, str], str]:
    rows = pd.read_csv(NOTES)[["table", "method", "metric", "note"]]
    return {(table, method, metric): note for table, method, metric, note in rows.to_numpy()}


def note_of(table: str, method: str, metric: str) -> str:
    """What is known of one printed cell."""
    found = _notes()
    column = found.get((table, "*", metric), UNEXPLAINED)
    return found.get((table, method, metric), column)
