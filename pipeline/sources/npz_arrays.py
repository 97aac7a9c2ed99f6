"""Which array of an npz is what: labels, logits or probabilities, names, groups, splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from metrics.archive import array_names, read_arrays
from metrics.validation import InputError, check_logits, check_probabilities
from pipeline.sources.class_labels import is_plain
from pipeline.sources.given import Given, is_split, tested_by

NO_GROUPS = ("labels", "label", "logits", "probabilities", "class_names")

WEIGHTS = ("weight", "weights", "sample_weight")
"""Arrays whose owner would take the numbers for weighted ones."""

MATRICES = ("logits", "probabilities")
"""Left in the file where it holds them uncompressed: they may be larger than the memory."""

SAME = 1e-3
"""How far probabilities may be from the softmax of the logits beside them."""

SAVE = "copy it again if it was cut, save it with numpy.savez, or name a table of text .csv"


def read_npz_arrays(
    path: Path, values: str, groups: str | None = None, labelled: bool = True
) -> Given:
    """What the npz `path` gives, read as `values` (auto, logits or probabilities).

    Args:
        groups: the array that names each point's group; None: `groups`, if there is one.
        labelled: labels are asked for; else what belongs to them is passed over.

    Raises:
        InputError: it is damaged, lacks an array, or two of its arrays could be meant.
    """
    used = (*NO_GROUPS, groups or "groups") if labelled else (*MATRICES, "class_names")
    arrays = read_arrays(path, only=used, fix=SAVE, mapped=MATRICES)
    labels = arrays.get("labels", arrays.get("label"))
    if "label" in arrays and not np.array_equal(np.asarray(labels), arrays["label"]):
        raise InputError(f"{path}: `labels` and `label` differ; leave one out")
    wanted = MATRICES if values == "auto" else (values,)
    kind = next((name for name in wanted if name in arrays), None)
    names = array_names(path)
    held = ", ".join(names) or "nothing"
    if kind is None:
        raise InputError(
            f"{path}: no array {' or '.join(f'`{name}`' for name in wanted)} "
            f"(it holds {held}); add one, [n, classes]"
        )
    if labelled and labels is None:
        raise InputError(f"{path}: no array `labels` (it holds {held}); add it, [n]")
    if groups is not None and (groups not in arrays or groups in NO_GROUPS):
        raise InputError(f"{path}: no array `{groups}` for groups (it holds {held}); name one [n]")
    if values == "auto" and "logits" in arrays and "probabilities" in arrays:
        _check_agree(path, arrays["logits"], arrays["probabilities"])
    class_names = arrays.get("class_names")
    if labelled and (weights := [name for name in names if name in WEIGHTS]):
        raise InputError(
            f"{path}: {weights[0]}: points have no weights here; repeat rows, or leave it out"
        )
    splits = read_arrays(path, only=[name for name in names if labelled and is_split(name)])
    tested = (
        []
        if labels is None
        else [tested_by(path, name, words, len(labels)) for name, words in splits.items()]
    )
    return Given(
        kind=kind,
        matrix=arrays[kind],
        labels=labels,
        names=None if class_names is None else _class_names(path, class_names, arrays[kind]),
        groups=arrays.get(groups or "groups"),
        tested=np.array(tested) if tested else None,
    )


def _check_agree(path: Path, logits: NDArray[Any], probabilities: NDArray[Any]) -> None:
    z = check_logits(logits, name=f"{path}: logits").to(torch.float64)
    p = check_probabilities(probabilities, name=f"{path}: probabilities")
    if z.shape != p.shape or float((torch.softmax(z, dim=1) - p).abs().max()) > SAME:
        raise InputError(
            f"{path}: `probabilities` are not the softmax of `logits`; leave one out, or choose: "
            "--values logits or --values probabilities"
        )


def _class_names(path: Path, names: NDArray[Any], matrix: NDArray[Any]) -> list[str]:
    columns = matrix.shape[1] if matrix.ndim == 2 and matrix.shape[1] > 1 else 2
    if names.dtype.kind == "S":
        names = np.char.decode(names, "utf-8", "replace")
    if names.shape != (columns,):
        raise InputError(
            f"{path}: class_names: shape {list(names.shape)} for {columns} classes; give one name "
            "per column, in the columns' order"
        )
    listed = [str(name).strip() for name in names.tolist()]
    if len(set(listed)) < columns or not all(name and is_plain(name) for name in listed):
        raise InputError(
            f"{path}: class_names: empty, repeated or unprintable; give each class its own"
        )
    return listed
