"""When a file is scored in one pass: by choice, or because it is too large for the memory.

The pass itself is in streaming/stream.py, which is imported only where there is one.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from ...harness.parameters import UsageError
from ..reading.parts import is_too_large
from ..words.forms import shards_of
from .options import OWN_UTILITIES, Options


class Rule(NamedTuple):
    """Options that one pass refuses."""

    options: tuple[str, ...]
    """Their names, as fields of `Options`."""
    why: str
    fix: str
    """What to do instead."""
    needs_all: bool = True
    """Whether they need all points in memory. A large file is then read as a whole, unless the
    person asks for one pass."""


RULES = (
    Rule(
        (
            "test",
            "groups",
            "clusters",
            "distinct",
            "splits",
            "similarity",
            "calibrate_for",
            *OWN_UTILITIES,
        ),
        "needs all cases at once, which one pass does not have",
        "leave it out",
    ),
    Rule(
        ("methods", "save", "save_on", "method"),
        "one pass fits nothing",
        "fit on a sample (docs/streaming.md), and give the saved file: --calibrator FILE",
    ),
    Rule(("tuning",), "one pass fits nothing", "leave it out", needs_all=False),
    Rule(("quick",), "one pass is always the same", "leave it out", needs_all=False),
    Rule(("wide",), "one pass always prints all columns", "leave it out", needs_all=False),
    Rule(("seed",), "one pass draws nothing at random", "leave it out", needs_all=False),
)
"""What one pass refuses: no option is accepted that would have no effect."""


def shards_to_stream(options: Options) -> list[Path]:
    """The files to read in one pass: by choice, or because they are too many; [] if it is not so.

    Raises:
        UsageError: an option has no effect in one pass.
    """
    shards = shards_of(options.file)
    is_asked = options.stream or options.calibrator is not None or shards != [options.file]
    refused = [(rule, name) for rule in RULES for name in rule.options if _is_set(options, name)]
    if not is_asked:
        # A large file with such an option is read whole, which its size may refuse (size.py).
        needs_all = any(rule.needs_all for rule, _ in refused)
        if needs_all or not is_too_large(options.file):
            return []
    if refused:
        lines = [f"--{name.replace('_', '-')}: {rule.why}; {rule.fix}" for rule, name in refused]
        raise UsageError("; also ".join(lines))
    return shards


def _is_set(options: Options, name: str) -> bool:
    """Whether the person gave an option another value than it has without them."""
    if name == "methods":
        return not options.may_add
    (default,) = (field.default for field in fields(Options) if field.name == name)
    return bool(getattr(options, name) != default)
