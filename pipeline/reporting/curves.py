"""One eCDF curve per method out of the splits' sampled utilities.

In each split the M errors, sorted, are the quantile function of that split's eCDF (section 3: the
share of sampled utilities with an error of at most e). A method's curve is the mean over splits of
these sorted errors, level by level: the eCDF of a typical split. Pooling all M x splits errors
would add the scatter between splits to the width of the curve, and averaging each utility over the
splits first would remove the sampling error that the noise floor shows; the mean of the quantile
functions is comparable with the floor's curves, which are per split and sorted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.reporting.collect import UnitResult
from pipeline.reporting.names import FLOOR_METHOD

Array = NDArray[np.float64]

FAMILIES = ("linear", "rank")


@dataclass(frozen=True)
class Band:
    """The noise floor of the sorted errors: mean, 5 % and 95 % quantile, each [M]."""

    mean: Array
    low: Array
    high: Array
    method: str


@dataclass(frozen=True)
class Curves:
    """One family of utilities on one benchmark: sorted errors [M] per method, and their floor."""

    family: str
    errors: Mapping[str, Array]
    floor: Band | None
    splits: int
    batch: int | None = None
    """Points of the disjoint batches that errors are means over; None: all points at once."""

    @property
    def count(self) -> int:
        """M, the number of sampled utilities."""
        return len(next(iter(self.errors.values())))


def pooled_curves(
    units: Iterable[UnitResult], methods: Sequence[str], family: str, batch: int | None = None
) -> Curves:
    """The curves of `methods` for one benchmark's units; family is `linear` or `rank`.

    The floor is that of temperature scaling, or of the first method where that is absent.
    Raises ValueError if splits hold different numbers of utilities, or a method has no unit.
    """
    units = list(units)
    errors = {m: _mean_sorted(_stack(units, m, family), m) for m in methods}
    if len({len(curve) for curve in errors.values()}) > 1:
        raise ValueError(f"{family}: methods were evaluated on different numbers of utilities")
    source = FLOOR_METHOD if FLOOR_METHOD in methods else methods[0]
    floor = _floor(units, source, family)
    return Curves(family, errors, floor, len({unit.split for unit in units}), batch)


def _floor(units: Sequence[UnitResult], method: str, family: str) -> Band | None:
    stacks = [_stack(units, method, f"{family}_floor_{key}") for key in ("mean", "q05", "q95")]
    if not all(stacks):
        return None
    mean, low, high = (_mean_sorted(stack, method) for stack in stacks)
    return Band(mean, low, high, method)


def _stack(units: Sequence[UnitResult], method: str, key: str) -> list[Array]:
    return [
        np.asarray(unit.ecdf[key], dtype=np.float64)
        for unit in units
        if unit.method == method and key in unit.ecdf
    ]


def _mean_sorted(errors: Sequence[Array], method: str) -> Array:
    if not errors:
        raise ValueError(f"{method}: no eCDF to draw")
    if len({len(split) for split in errors}) > 1:
        raise ValueError(f"{method}: splits were evaluated on different numbers of utilities")
    return np.asarray(np.sort(np.stack(errors), axis=1).mean(axis=0))
