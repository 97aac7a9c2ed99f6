"""The numbers of one cell of JSON by name or place, in the forms that programs write."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .usual_names import ENTRIES

LISTS = (list, tuple, np.ndarray, dict)  # what a cell of a column of lists may be
BEFORE_WORDS = "ĠĊ▁"  # how tokenizers write the space or the line end before a word
LAYERS = ("content", "top_logprobs")  # what holds the candidates of a position in logs of APIs


class Entries(NamedTuple):
    """The entries of a cell.

    pairs: name or place, and number. are_listed: whether the row lists its largest candidates, so
    that others may be missing and several may be one word. are_tokens: whether these are words of a
    vocabulary, most of which are no classes. wrong, fix: why the cell cannot be read.
    """

    pairs: list[tuple[Any, Any]]
    are_listed: bool = False
    are_tokens: bool = False
    wrong: str = ""
    fix: str = ""


def entries_of(cell: Any) -> Entries:
    """The numbers of a list by place, of an object by name; nothing of anything else."""
    cell, is_token = _position(cell)
    if isinstance(cell, dict):
        return _of_object(cell, is_token)
    if not isinstance(cell, LISTS):
        return Entries([])
    parts = list(cell)
    are_objects = bool(parts) and all(isinstance(part, dict) for part in parts)
    for name, number in ENTRIES:
        if are_objects and all({name, number} <= part.keys() for part in parts):
            pairs = [(str(part[name]), part[number]) for part in parts]
            return Entries(pairs, are_listed=True, are_tokens=name == "token")
    if are_objects and not any(isinstance(value, str) for part in parts for value in part.values()):
        fix = "keep the one at which the answer stands"
        return Entries([], wrong=f"{len(parts)} objects, perhaps one per position", fix=fix)
    are_pairs = all(isinstance(part, LISTS[:-1]) and len(part) == 2 for part in parts)
    return Entries(list(enumerate(part[0] if are_pairs else part for part in parts)))


def _position(cell: Any) -> tuple[Any, bool]:
    """The candidates of the only position of a log, and whether they are tokens."""
    is_token = False
    while True:
        inner = None
        if isinstance(cell, dict):
            inner = next((cell[layer] for layer in LAYERS if layer in cell), None)
        elif isinstance(cell, LISTS) and len(cell) == 1 and isinstance(cell[0], dict):
            has_numbers = any({*names} <= cell[0].keys() for names in ENTRIES)
            inner = None if has_numbers and "top_logprobs" not in cell[0] else cell[0]
        if not isinstance(inner, LISTS):
            return cell, is_token
        cell, is_token = inner, True


def _of_object(cell: dict[Any, Any], is_token: bool) -> Entries:
    """The numbers of an object by name, or of one object per token, which vLLM writes."""
    if cell and all(isinstance(value, dict) and "logprob" in value for value in cell.values()):
        pairs = [
            (str(value.get("decoded_token") or key), value["logprob"])
            for key, value in cell.items()
        ]
        return Entries(pairs, are_listed=True, are_tokens=True)
    pairs = [(str(key), value) for key, value in cell.items()]
    return Entries(pairs, are_listed=is_token, are_tokens=is_token)


def word_of(token: str) -> str:
    """A token without the spaces around it, however a tokenizer writes them."""
    return token.strip().strip(BEFORE_WORDS).strip()
