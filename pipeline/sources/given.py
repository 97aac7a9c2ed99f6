"""What a person's file gives, before it is checked: the same for npz, CSV and parquet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Given:
    """Arrays of a file by what they are for."""

    kind: str | None
    """logits, probabilities, or None where the file does not say."""
    matrix: Any
    """[n, C]; probabilities of two classes also [n] or [n, 1]."""
    labels: Any
    """[n], numbers or names of classes."""
    names: list[str] | None = None
    """Of the columns, [C]."""
    groups: Any = None
    """[n], where the file has them."""
