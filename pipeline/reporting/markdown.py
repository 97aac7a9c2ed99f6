"""Plain text and tables of text as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


def escape_markdown(text: str) -> str:
    """Plain text as Markdown text: no markup, no HTML, one line."""
    line = " ".join(escape(text, quote=False).split())
    return re.sub(r"([\\`*\[\]|$]|(?<!\w)_|_(?!\w))", r"\\\1", line)


def markdown_table(heading: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """A table of cells that are Markdown; the first `text` columns are not right-aligned."""
    rule = ["---" if column < text else "--:" for column in range(len(heading))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, rule, *lines])


@dataclass(frozen=True)
class TextTable:
    """A table of plain text with a note below it."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str

    def markdown(self) -> str:
        """As Markdown under a heading of the third level."""
        heading = [escape_markdown(cell) for cell in self.heading]
        rows = [[escape_markdown(cell) for cell in row] for row in self.rows]
        table = markdown_table(heading, rows)
        return f"### {self.title}\n\n{table}\n\n{escape_markdown(self.note)}"
