"""Symbolic links that DVC does not follow. It needs Python's standard library alone."""

from __future__ import annotations

from pathlib import Path

OUTPUTS = ("data", "results", *(f"data/{stage}" for stage in ("logits", "fits", "scores")))


def links() -> list[str]:
    """A line about each folder of outputs that is a symbolic link."""
    return [
        f"{name} is a symbolic link, which DVC does not follow; remove the link and put the whole "
        "project on the large disk (docs/reproduce.md has other ways)"
        for name in OUTPUTS
        if Path(name).is_symlink()
    ]
