"""A function that calls another one of its module, for programs that compare its digests."""

from __future__ import annotations

from typing import Any


def inside(values: Any) -> bool:
    return "b" in {"a", "b", "c"}  # a set's order depends on the program


def kept(values: Any) -> Any:
    return inside(values) * values
