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

ROUNDING = 0.02
"""By which the masses of a row may exceed one."""
Floats = NDArray[np.float64]


@dataclass
class Masses:
    """What rows say of the classes; masses are logarithms."""

    values: Floats
    """[n, C], the numbers of the classes as the rows have them."""
    is_absent: NDArray[np.bool_]
    """[n, C], where they have none."""
    others: Floats
    """[n], the mass of all names that are no classes."""
    total: Floats
    """[n], the mass of all entries."""
    lowest: Floats
    """[n], the mass of the smallest entry."""
    n_added: int
    """Rows in which several entries are one class."""


def class_masses(
    rows: Sequence[Entries], classes: Sequence[Any], is_p: bool
) -> tuple[Floats, list[str]]:
    """Numbers [n, C] of `classes` in each row, and notes on what was added, filled or left out.

    `is_p` says whether the entries' numbers are probabilities, else they are logarithms.

    Raises:
        TypeError, ValueError: an entry is no number.
    """
    masses = _masses_of(rows, classes, is_p)
    values = masses.values
    has_others = bool(np.isfinite(masses.others).any())
    is_part = has_others or any(entries.are_listed for entries in rows)
    # Only masses that sum to at most one leave something for classes that a row does not list.
    are_shares = bool((masses.total <= np.log1p(ROUNDING)).all())
    notes = list[str]()
    if masses.n_added:
        notes.append(f"names that differ by spaces only are added up in {masses.n_added:,} cases")
    is_incomplete = masses.is_absent.any(axis=1)
    if is_incomplete.any() and is_part and are_shares:
        notes += _fill(masses, is_p)
    elif is_incomplete.any():
        values[masses.is_absent] = 0.0 if is_p else -np.inf
        notes.append(
            f"{is_incomplete.sum():,} cases have fewer than {len(classes)} entries; options that "
            "they lack are impossible"
        )
    other_share = np.exp(masses.others - masses.total)
    if other_share.any():
        notes.append(
            f"{100 * other_share.mean():.3g} % of the mass is of other names and left out, "
            f"in one case {100 * other_share.max():.3g} %"
        )
    if is_p and is_part and are_shares and (other_share.any() or is_incomplete.any()):
        values /= values.sum(axis=1, keepdims=True)
    return values, notes


def _masses_of(rows: Sequence[Entries], classes: Sequence[Any], is_p: bool) -> Masses:
    """What the rows say of the classes, with NaN for classes that they do not list."""
    n, n_classes = len(rows), len(classes)
    masses = Masses(
        values=np.full((n, n_classes), np.nan),
        is_absent=np.ones((n, n_classes), dtype=bool),
        others=np.full(n, -np.inf),
        total=np.full(n, -np.inf),
        lowest=np.full(n, -np.inf),
        n_added=0,
    )
    column_of = {name: column for column, name in enumerate(classes)}
    for row, entries in enumerate(rows):
        _add_row(masses, row, entries, column_of, is_p)
    return masses


def _add_row(
    masses: Masses, row: int, entries: Entries, column_of: dict[Any, int], is_p: bool
) -> None:
    """Add the entries of a row."""
    numbers = np.array([value for _, value in entries.pairs], float)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 is impossible; -1 is refused later
        logarithms = np.log(numbers) if is_p else numbers
    masses.total[row] = logsumexp(logarithms)
    masses.lowest[row] = logarithms.min()
    is_added = False
    for (key, _), number, mass in zip(entries.pairs, numbers, logarithms, strict=True):
        # Tokens such as "A" and " A" are one word; names of objects stay as they are.
        column = column_of.get(word_of(key) if entries.are_listed else key)
        if column is None:
            masses.others[row] = np.logaddexp(masses.others[row], mass)
        elif masses.is_absent[row, column]:
            masses.values[row, column] = number
            masses.is_absent[row, column] = False
        else:
            before = masses.values[row, column]
            both = before + number if is_p else np.logaddexp(before, number)
            masses.values[row, column] = both
            is_added = True
    masses.n_added += is_added


def _fill(masses: Masses, is_p: bool) -> list[str]:
    """Give absent classes what their row leaves; notes on how much that is."""
    is_absent = masses.is_absent
    n_classes = is_absent.shape[1]
    n_absent = is_absent.sum(axis=1)
    is_incomplete = n_absent > 0
    left = np.clip(1 - np.exp(masses.total), 0, 1)
    # A class that is not listed has at most the mass of the last one that is.
    each = np.minimum(left / np.maximum(n_absent, 1), np.exp(masses.lowest))
    with np.errstate(divide="ignore"):  # nothing is left
        filled = each if is_p else np.log(each)
    masses.values[is_absent] = np.repeat(filled[:, None], n_classes, axis=1)[is_absent]
    most = 100 * (each * n_absent)[is_incomplete].max()
    notes = [
        f"{is_incomplete.sum():,} cases do not list all {n_classes} classes; what they lack gets "
        f"what the listed ones leave, at most {most:.3g} % of the mass"
    ]
    is_empty = is_absent.all(axis=1)
    if is_empty.any():
        notes.append(f"{is_empty.sum():,} cases list no class; all classes get the same there")
        masses.values[is_empty] = 1 / n_classes if is_p else 0.0
    return notes
