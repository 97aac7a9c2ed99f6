"""What is compared: the contenders of a case get the same arrays and must give the same answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scripts.speed.inputs import Arrays, Size

Answer = Mapping[str, NDArray[np.float64]]
PLAIN, OURS, OURS_GPU = "plain", "ours", "ours (GPU)"


@dataclass(frozen=True)
class Contender:
    """One way to compute the answer.

    prepare: arrays and device -> what `run` takes; outside the clock (copies to the GPU, objects).
    run: the work that is timed.
    answer: prepared data and result -> named arrays to compare; outside the clock.
    package: module that must be installed; None for ours and for plain NumPy and SciPy.
    steps: the time is divided by this number (patching: per step).
    tolerance: for its answer; None: the case's.
    """

    name: str
    prepare: Callable[[Arrays, str], Any]
    run: Callable[[Any], Any]
    answer: Callable[[Any, Any], Answer]
    package: str | None = None
    device: Literal["cpu", "cuda"] = "cpu"
    steps: int = 1
    tolerance: float | None = None


@dataclass(frozen=True)
class Agreement:
    """How far an answer is from the reference's, in the unit of the answer."""

    distance: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the answers agree; NaN does not."""
        return self.distance <= self.tolerance


@dataclass(frozen=True)
class Target:
    """A demand on ours: at most `factor` times the seconds of `against`; None: absolute seconds."""

    factor: float
    against: str | None

    def __str__(self) -> str:
        if self.against is None:
            return f"under {self.factor:g} s"
        if self.factor < 1 and abs(1 / self.factor - round(1 / self.factor)) < 1e-9:
            return f"{round(1 / self.factor)}× faster than {self.against}"
        return f"at most {self.factor:g}× {self.against}'s time"


@dataclass(frozen=True)
class Case:
    """A piece of work at one size.

    key: what `--cases` selects, equal for all sizes of a kind of work.
    compare: "same": the largest absolute difference of any number from the reference's is at most
        `tolerance`; "no_worse": every number exceeds the reference's by at most it (a likelihood).
    reference: the contender whose answer counts, measured before those that it is compared with.
    target, gpu_target: demands on ours and on ours on the GPU (an H200), the latter in seconds.
    note: what the clock covers on each side, where that is not plain.
    """

    key: str
    title: str
    size: Size
    contenders: tuple[Contender, ...]
    tolerance: float
    compare: Literal["same", "no_worse"] = "same"
    reference: str = PLAIN
    target: Target | None = None
    gpu_target: float | None = None
    note: str = ""
    warm_up: Size = field(default=Size(64, 5, 7, 2))


def agreement(case: Case, contender: Contender, reference: Answer, answer: Answer) -> Agreement:
    """Compare an answer with the reference's; names that only one of them has do not count."""
    gaps = []
    for name in sorted(reference.keys() & answer.keys()):
        gap = np.asarray(answer[name], float) - np.asarray(reference[name], float)
        gaps.append(np.max(np.abs(gap) if case.compare == "same" else gap))
    tolerance = case.tolerance if contender.tolerance is None else contender.tolerance
    return Agreement(float(np.max(gaps)) if gaps else float("nan"), tolerance)
