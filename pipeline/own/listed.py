"""The mass of each class in rows that list some candidates: the largest labels, or tokens.

"A" and " A" are one word, whose masses are added. A class that a row does not list gets what the
listed ones leave, in equal parts with other such classes, and at most the smallest listed mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .entries import Entries, word_of

ROUNDING = 0.02  # by which the masses of a row may exceed one
Floats = NDArray[np.float64]


@dataclass
class Masses:
    """What rows say of the classes; masses are logarithms.

    values: [n, C], the numbers of the classes as the rows have them. absent: [n, C], where they
    have none. others, total, lowest: [n], the mass of all other names, that of all entries, and
    that of the smallest entry. added: rows in which several entries are one class.
    """

    values: Floats
    absent: NDArray[np.bool_]
    others: Floats
    total: Floats
    lowest: Floats
    added: int


def listed(rows: Sequence[Entries], classes: Sequence[Any], is_p: bool) -> tuple[Floats, list[str]]:
    """Numbers [n, C] of `classes` in each row, and notes on what was added, filled or left out.

    `is_p` says whether the entries' numbers are probabilities, else they are logarithms.

    Raises:
        TypeError, ValueError: an entry is no number.
    """
    masses = _masses(rows, classes, is_p)
    values, absent = masses.values, masses.absent
    is_part = any(entries.are_listed for entries in rows) or bool(np.isfinite(masses.others).any())
    are_shares = bool((masses.total <= np.log1p(ROUNDING)).all())
    notes = list[str]()
    if masses.added:
        notes.append(f"names that differ by spaces only are added up in {masses.added:,} rows")
    incomplete = absent.any(axis=1)
    if incomplete.any() and is_part and are_shares:
        notes += _fill(masses, is_p)
    elif incomplete.any():
        values[absent] = 0.0 if is_p else -np.inf
        notes.append(
            f"{incomplete.sum():,} rows have fewer than {len(classes)} entries; options that they "
            "lack are impossible"
        )
    share = np.exp(masses.others - masses.total)
    if share.any():
        notes.append(
            f"{100 * share.mean():.3g} % of the mass is of other names and left out, "
            f"in one row {100 * share.max():.3g} %"
        )
    if is_p and are_shares and (share.any() or incomplete.any()):
        values /= values.sum(axis=1, keepdims=True)
    return values, notes


def _masses(rows: Sequence[Entries], classes: Sequence[Any], is_p: bool) -> Masses:
    """What the rows say of the classes, with NaN for classes that they do not list."""
    place = {name: number for number, name in enumerate(classes)}
    size = len(rows), len(classes)
    values, absent = np.full(size, np.nan), np.ones(size, dtype=bool)
    others, total, lowest = np.full((3, len(rows)), -np.inf)
    added = 0
    for row, entries in enumerate(rows):
        numbers = np.array([value for _, value in entries.pairs], float)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 is impossible; -1 is refused later
            logarithms = np.log(numbers) if is_p else numbers
        total[row], lowest[row] = logsumexp(logarithms), logarithms.min()
        is_added = False
        for (key, _), number, mass in zip(entries.pairs, numbers, logarithms, strict=True):
            column = place.get(word_of(key) if entries.are_listed else key)
            if column is None:
                others[row] = np.logaddexp(others[row], mass)
            elif absent[row, column]:
                values[row, column], absent[row, column] = number, False
            else:
                before = values[row, column]
                values[row, column] = before + number if is_p else np.logaddexp(before, number)
                is_added = True
        added += is_added
    return Masses(values, absent, others, total, lowest, added)


def _fill(masses: Masses, is_p: bool) -> list[str]:
    """Give absent classes what their row leaves; notes on how much that is."""
    absent = masses.absent
    counts = absent.sum(axis=1)
    incomplete = counts > 0
    rest = np.clip(1 - np.exp(masses.total), 0, 1) / np.maximum(counts, 1)
    each = np.minimum(rest, np.exp(masses.lowest))
    with np.errstate(divide="ignore"):  # nothing is left
        filled = each if is_p else np.log(each)
    masses.values[absent] = np.repeat(filled[:, None], absent.shape[1], axis=1)[absent]
    most = 100 * (each * counts)[incomplete].max()
    notes = [
        f"{incomplete.sum():,} rows do not list all {absent.shape[1]} classes; what they lack gets "
        f"what the listed ones leave, at most {most:.3g} % of the mass"
    ]
    empty = absent.all(axis=1)
    if empty.any():
        notes.append(f"{empty.sum():,} rows list no class; all classes get the same there")
        masses.values[empty] = 1 / absent.shape[1] if is_p else 0.0
    return notes
