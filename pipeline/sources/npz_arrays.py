"""The arrays of an npz by their purpose: labels, logits or probabilities, groups, weights, …"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from metrics.archive import array_names, read_arrays
from metrics.validation import InputError
from pipeline.sources.given import WEIGHTS, Given, is_split, with_labels
from pipeline.sources.text import text_of

MATRICES = ("logits", "probabilities")
"""Arrays that stay in the file where they are uncompressed; they may be larger than the memory."""

SAVE = "copy it again if it was cut, save it with numpy.savez, or name a table of text .csv"


def read_npz_arrays(
    path: Path, values: str, groups: str | None = None, labelled: bool = True
) -> Given:
    """Read the npz `path`; `values` is auto, logits or probabilities.

    Args:
        groups: the array that names each point's group; None means `groups`, if there is one.
        labelled: whether labels are needed; else only the matrix and the names are read.

    Raises:
        InputError: the file is damaged, lacks an array, or has both kinds of answers.
    """
    names = array_names(path)
    used = [*MATRICES, "class_names"]
    if labelled:
        used += ["labels", groups or "groups", *WEIGHTS, *filter(is_split, names)]
    arrays = read_arrays(path, only=used, fix=SAVE, mapped=MATRICES)
    held = f"(it holds {', '.join(names) or 'nothing'})"
    wanted = MATRICES if values == "auto" else (values,)
    kinds = [kind for kind in wanted if kind in arrays]
    if not kinds:
        either = " or ".join(f"`{kind}`" for kind in wanted)
        raise InputError(f"{path}: no array {either} {held}; add one, [n, classes]")
    if len(kinds) > 1:
        raise InputError(
            f"{path}: both `logits` and `probabilities`; choose: --values logits or --values "
            "probabilities"
        )
    matrix, classes = arrays[kinds[0]], arrays.get("class_names")
    labels = np.size(arrays.get("labels", ()))
    if labelled and matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1] == labels:
        raise InputError(
            f"{path}: {kinds[0]}: {list(matrix.shape)} for {labels} labels, which looks "
            "transposed; give one row per point"
        )
    if classes is not None:
        columns = matrix.shape[1] if matrix.ndim == 2 and matrix.shape[1] > 1 else 2
        classes = text_of(classes, columns, f"{path}: class_names").tolist()
        if len(set(classes)) < columns:
            raise InputError(f"{path}: class_names: one is repeated; give each class its own")
    given = Given(kinds[0], matrix, classes)
    if not labelled:
        return given
    if "labels" not in arrays:
        raise InputError(f"{path}: no array `labels` {held}; add it, [n]")
    if groups is not None and groups not in arrays:
        raise InputError(f"{path}: no array `{groups}` for groups {held}; name one [n]")
    return with_labels(path, given, arrays["labels"], arrays, groups)
