"""The pages that people read, and what the tests take from them: prose, links, blocks of code."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted(ROOT.glob("docs/**/*.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NOT_PROSE = re.compile(r"^(#|!\[|\|)|( \| )|^ {4}")
BREAK = re.compile(r"^(?:[-*>]|\d+\.) ", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its language, its text, and the output that the page shows under it."""

    language: str
    text: str
    output: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The page's blocks in order; a block of text that follows one of Python is its output."""
    fenced = [*FENCED.findall(page.read_text(encoding="utf-8")), ("", "")]
    return [
        Block(language, text, after if language == "python" and next_language == "text" else "")
        for (language, text), (next_language, after) in pairwise(fenced)
    ]


def links(page: Path) -> list[str]:
    """The targets of the page's links and pictures, outside of its blocks of code."""
    return LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))


def paragraphs(page: Path) -> list[str]:
    """The page's prose: no code, tables, headings or pictures; a point of a list is one each."""
    text = FENCED.sub("\n", page.read_text(encoding="utf-8"))
    lines = ["" if NOT_PROSE.search(line) else line for line in text.splitlines()]
    separated = BREAK.sub("\n\n", "\n".join(lines))
    return [part for part in map(str.strip, re.split(r"\n\s*\n", separated)) if part]


def words(text: str) -> list[str]:
    """What a reader reads: addresses of links do not count, nor do marks alone."""
    shown = re.sub(r"\]\([^)]*\)", "", text)
    return [word for word in shown.split() if re.search(r"\w", word)]


def sentences(paragraph: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.?!])\s+", paragraph) if words(part)]
