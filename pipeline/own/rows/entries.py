"""The numbers of one cell of JSON by name or place, in the forms that programs write."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..words.usual_names import ENTRIES

WITHOUT_NAMES = (list, tuple, np.ndarray)
"""What a cell may be whose entries have no names: a list of JSON, or what parquet makes of it."""
LISTS = (*WITHOUT_NAMES, dict)
"""What a cell of a column of lists may be; the last is an object of JSON."""
BEFORE_WORDS = "ĠĊ▁"
"""How tokenizers write the space or the line end before a word."""
LAYERS = ("content", "top_logprobs")
"""What holds the candidates of a position in logs of APIs."""


class Entries(NamedTuple):
    """The entries of a cell."""

    pairs: list[tuple[Any, Any]]
    """Name or place, and number."""
    are_listed: bool = False
    """Whether the row lists its largest candidates, so that others may be missing and several may
    be one word."""
    are_tokens: bool = False
    """Whether these are words of a vocabulary, most of which are no classes."""
    wrong: str = ""
    """Why the cell cannot be read."""
    fix: str = ""
    """What settles it."""


def entries_of(cell: Any) -> Entries:
    """The numbers of a list by place, of an object by name; nothing of anything else."""
    cell, is_token = _position(cell)
    if isinstance(cell, dict):
        return _of_object(cell, is_token)
    if not isinstance(cell, LISTS):
        return Entries([])
    parts = list(cell)
    if parts and all(isinstance(part, dict) for part in parts):
        entries = _of_objects(parts)
        if entries is not None:
            return entries
    # Evaluation harnesses write [logit, whether it is the largest one].
    are_pairs = all(isinstance(part, WITHOUT_NAMES) and len(part) == 2 for part in parts)
    numbers = [part[0] if are_pairs else part for part in parts]
    return Entries(list(enumerate(numbers)))


def _of_objects(parts: list[dict[Any, Any]]) -> Entries | None:
    """The numbers of objects such as {label, score}; None: they are of another form."""
    for name, number in ENTRIES:
        if all({name, number} <= part.keys() for part in parts):
            pairs = [(str(part[name]), part[number]) for part in parts]
            return Entries(pairs, are_listed=True, are_tokens=name == "token")
    has_text = any(isinstance(value, str) for part in parts for value in part.values())
    if has_text:
        return None
    # Objects of numbers alone are answers of their own, one for each position of a text.
    wrong = f"{len(parts)} objects, perhaps one per position"
    return Entries([], wrong=wrong, fix="keep the one at which the answer stands")


def _position(cell: Any) -> tuple[Any, bool]:
    """The candidates of the only position of a log, and whether they are tokens."""
    is_token = False
    while True:
        inner = _inside(cell)
        if not isinstance(inner, LISTS):
            return cell, is_token
        cell, is_token = inner, True


def _inside(cell: Any) -> Any:
    """What one layer of a log holds; None: this is no layer."""
    if isinstance(cell, dict):
        return next((cell[layer] for layer in LAYERS if layer in cell), None)
    if isinstance(cell, LISTS) and len(cell) == 1 and isinstance(cell[0], dict):
        only = cell[0]
        has_numbers = any({*names} <= only.keys() for names in ENTRIES)
        # APIs write the chosen token beside the candidates, which are what counts.
        if not has_numbers or "top_logprobs" in only:
            return only
    return None


def _of_object(cell: dict[Any, Any], is_token: bool) -> Entries:
    """The numbers of an object by name, or of one object per token, which vLLM writes."""
    has_logprobs = [isinstance(value, dict) and "logprob" in value for value in cell.values()]
    if cell and all(has_logprobs):
        pairs = []
        for key, value in cell.items():
            word = value.get("decoded_token") or key  # the key is the number of the token
            pairs.append((str(word), value["logprob"]))
        return Entries(pairs, are_listed=True, are_tokens=True)
    pairs = [(str(key), value) for key, value in cell.items()]
    return Entries(pairs, are_listed=is_token, are_tokens=is_token)


def word_of(token: str) -> str:
    """A token without the spaces around it, however a tokenizer writes them."""
    return token.strip().strip(BEFORE_WORDS).strip()
