"""The contents of a user's file, the same for npz, CSV and parquet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, check_weights
from pipeline.sources.text import short, text_of

CALIBRATES = ("calibration", "cal", "validation", "val")
TESTS = ("test",)
"""Words in a column or array `split` for points that calibrate, and for points that test."""
WEIGHTS = ("weight", "weights", "sample_weight")
"""Names of a column or array with the weights of the points."""
MOST_GROUPS = 100
"""Largest number of groups in one file; each gets tables of its own."""


@dataclass(frozen=True)
class Given:
    """The arrays of a file by their purpose."""

    kind: str | None
    """logits, probabilities, or None if the file does not say."""
    matrix: Any
    """[n, C]; for two classes also [n] or [n, 1]."""
    names: list[str] | None = None
    """Names of the columns, [C]."""
    labels: Any = None
    """[n], numbers or names of classes; None if points need no labels."""
    groups: NDArray[np.str_] | None = None
    """[n], if the file has groups."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True for test points, False for calibration points, if the file has splits."""
    weights: NDArray[np.float64] | None = None
    """[n], if the file has weights."""


def is_split(name: str) -> bool:
    """Whether a column or array of this name says which points calibrate: split, split_2, …"""
    return re.fullmatch(r"split_?\d*", name, re.IGNORECASE) is not None


def with_labels(
    path: Path, given: Given, labels: Any, others: Mapping[str, Any], groups: str | None
) -> Given:
    """`given` with the points' labels, and with their groups, splits and weights in `others`.

    Args:
        others: arrays or columns by name.
        groups: the name of the groups; None means `groups`, if there is one.

    Raises:
        InputError: an array holds something else; one line with the fix.
    """
    n, names = np.size(labels), others.get(groups or "groups")
    tested = [_tested(f"{path}: {name}", others[name], n) for name in others if is_split(name)]
    weights = [
        check_weights(others[name], n, f"{path}: {name}").numpy()
        for name in others
        if name.lower() in WEIGHTS
    ]
    return replace(
        given,
        labels=labels,
        groups=None if names is None else _groups(f"{path}: groups", names, n),
        tested=np.array(tested) if tested else None,
        weights=weights[0] if weights else None,
    )


def _groups(field: str, values: Any, n: int) -> NDArray[np.str_]:
    names = text_of(values, n, field)
    if (count := len(np.unique(names))) > MOST_GROUPS:
        raise InputError(
            f"{field}: {count} different names for {n} rows, at most {MOST_GROUPS}; give the group "
            "that a point belongs to, not its number"
        )
    return names


def _tested(field: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Which of `n` points test, by words of CALIBRATES and TESTS."""
    words = [word.casefold() for word in text_of(values, n, field).tolist()]
    for row, word in enumerate(words):
        if word not in (*CALIBRATES, *TESTS):
            raise InputError(
                f"{field}: `{short(word)}` in row {row}; say `calibration` or `test` of each "
                "point, and leave out points that the classifier was trained on"
            )
    tested = np.array([word in TESTS for word in words])
    for side, is_empty in (("calibration", tested.all()), ("test", not tested.any())):
        if is_empty:
            raise InputError(f"{field}: no row says `{side}`; mark points for it")
    return tested
