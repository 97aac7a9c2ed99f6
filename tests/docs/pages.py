"""The pages that people read, and what the tests take from them: links and blocks of code."""

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted(ROOT.glob("docs/**/*.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the output that the page shows under it."""

    language: str
    text: str
    output: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block; a command may go on in the next line."""
        return self.text.replace("\\\n", " ").splitlines() if self.language == "bash" else []


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


def run(text: str, page: Path, names: dict[str, object] | None = None) -> str:
    """Run a block of Python, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(text, str(page), "exec"), {"__name__": page.stem} if names is None else names)
    return output.getvalue()
