"""Names of classes and of clusters, and the numbers that the metrics use instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.forecast import Forecast
from metrics.validation import InputError, check_nothing_is_masked

ABSENT = ("", "nan", "None", "<NA>", "NaT")
"""How the missing name of a cluster reads."""


def class_numbers(
    labels: Any, names: Any, classes: int, name: str = "labels", columns: Any = None
) -> Any:
    """Return the place of each of `labels` [n] among `names` [C], those of the columns in order.

    Without `names` (None) the labels are returned as they are.

    Args:
        columns: names of a data frame's columns; the same names in another order are refused.
    """
    wanted = range(classes) if names is None else np.asarray(names).ravel().tolist()
    known = [str(entry) for entry in wanted]
    held = [] if columns is None else [str(entry) for entry in columns]
    if held != known and sorted(held) == sorted(known):
        fix = "pass frame[list(classes)]" if names is not None else f"pass frame[range({classes})]"
        raise InputError(
            f"columns: {held[0]} comes first, but {known[0]} is the first class; {fix}"
        )
    if names is None:
        return labels
    if len(known) != classes or len(set(known)) < classes:
        raise InputError(f"classes: {len(set(known))} names for {classes} columns; name each once")
    check_nothing_is_masked(labels, name)
    given = np.asarray(labels.cpu() if isinstance(labels, Tensor) else labels)
    distinct, places = np.unique(given.astype(np.str_), return_inverse=True)
    unknown = [entry for entry in distinct.tolist() if entry not in known]
    if unknown:
        row = int((places == distinct.tolist().index(unknown[0])).argmax())
        raise InputError(f"{name}: {unknown[0]!r} in row {row} is none of `classes`; correct it")
    order = [known.index(entry) for entry in distinct.tolist()]
    return np.array(order, dtype=np.int64)[places].reshape(given.shape)


def cluster_numbers(clusters: Any, forecast: Forecast) -> Tensor | None:
    """Return the number of each point's cluster, int64 [n] from 0; None for None.

    `clusters` [n] are names, text or numbers. There must be two clusters at least.
    """
    if clusters is None:
        return None
    name, n = "clusters", forecast.n
    check_nothing_is_masked(clusters, name)
    names = clusters.cpu().numpy() if isinstance(clusters, Tensor) else np.asarray(clusters)
    if names.shape != (n,):
        raise InputError(f"{name}: shape {list(names.shape)} for {n} rows; give one per row")
    absent = [str(name) in ABSENT for name in names.tolist()]
    if any(absent):
        fix = "give each row the name of its cluster"
        raise InputError(f"{name}: none in row {absent.index(True)}; {fix}")
    found, numbers = np.unique(names.astype(str) if names.dtype == object else names, False, True)
    if len(found) < 2:
        fix = "give what tells the independent units apart, such as patients"
        raise InputError(f"{name}: all rows are of cluster {found[0]}; {fix}")
    return torch.from_numpy(numbers.astype(np.int64)).to(forecast.probabilities.device)
