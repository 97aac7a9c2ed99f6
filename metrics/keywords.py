"""The keywords that the public functions share; every one takes them after its points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from numpy.typing import ArrayLike

from .arrays import JaxArray, TorchArray
from .option_checks import check_known


class PointOptions(TypedDict, total=False):
    """What may be said of the points of a metric.

    Args:
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times.
        classes: [C], the names of the columns in their order, if labels are names and the columns
            of a data frame do not say so.
        ignore_index: points of this label are left out, such as -100 for padded tokens.
    """

    sample_weight: ArrayLike | TorchArray | JaxArray | None
    classes: ArrayLike | None
    ignore_index: int | str | None


class SampleOptions(PointOptions, total=False):
    """What may be said of the points where chance is measured, too.

    Args:
        clusters: [n], text or numbers: points of one cluster, such as a patient's, need not be
            independent.
        points: [n], the number of each point in the whole data set, 0 … n - 1 if not given. A point
            draws its label from the same random numbers in all splits.
    """

    clusters: ArrayLike | None
    points: ArrayLike | None


def check_keywords(names: Iterable[str], known: type) -> None:
    """Raise `InputError`, with the nearest name, for the first keyword that is not `known`."""
    check_known(names, list(known.__annotations__), "keywords", "keyword")
