"""Algorithm 1 of the paper (app. A): iterative patching for utility calibration.

    line 3, 4   audit: find the witness w = ξ u⃗ 1{v in I} of largest error E<f - Y, w>
    line 5      stop if its error is at most ε
    line 8      choose the step η
    line 9      f ← Π_simplex(f - η w)

One loop serves all classes of utilities and all kinds of update. Read this file first. It uses

    utilities   a utility u: its prediction v, its realized value, its vectors u⃗
    state       the forecast f that moves, with its ranking
    audit       families of utilities, and the witness of largest error
    update      how rows move and how far: by projection as in the paper (`projection`), or by
                shifts of logits

and is used by

    calibrator, logit_shift   the two estimators
    base                      what the two estimators share
    start                     the probabilities that are patched
    tuning                    how the estimators choose the number of patches and other settings
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from utility_calibration.metrics.arrays import Array

from .audit import Auditor, find_worst, rows_within, witness_of
from .state import PatchedForecast
from .update import Update
from .utilities import Utility, Vectors

Ending = Literal["calibrated", "no step"]
"""Why a run ended before all requested patches are made: err <= ε, or no step lowers the loss."""


class Patch(NamedTuple):
    """Move the points with low <= v <= high by `shift` = -ξ η along the utility's u⃗."""

    utility: Utility
    low: float
    high: float
    shift: float
    error: float
    """Of the witness, before the patch."""
    loss_change: float
    """Of the mean loss of the points that the patch was fitted on."""
    points: int = 0
    """How many of these points the patch moved."""

    def apply(self, state: PatchedForecast, update: Update) -> None:
        """Apply the patch to any forecast."""
        v, _ = self.utility.predicted_and_realized(state)
        rows = rows_within(v, self.low, self.high)
        if len(rows):
            move(state, update, rows, self.utility.vectors(state, rows), self.shift)


def move(
    state: PatchedForecast, update: Update, rows: Array, vectors: Vectors, shift: float
) -> None:
    """Shift `rows` along their u⃗ (line 9)."""
    state.move(rows, lambda block: update.moved(state, rows[block], vectors.of(block), shift))


@dataclass
class Algorithm1:
    """The loop, which moves a forecast. Iterating over it gives the patches one by one."""

    state: PatchedForecast
    """The forecast f on the calibration points."""
    auditor: Auditor
    update: Update
    tolerance: float
    """ε."""
    number: int = field(default=0, init=False)
    """Of the next round; set it to go on where an equal run was left."""
    stopped: Ending | None = None
    """Why the run ended; None while it can go on."""

    def __iter__(self) -> Iterator[Patch]:
        patch = self.round()
        while patch is not None:
            yield patch
            patch = self.round()

    def round(self) -> Patch | None:
        """Do a round and return its patch; if the run ends, return None and set `stopped`."""
        families = self.auditor(self.state, self.number)
        family, number, _ = find_worst(families)
        witness = witness_of(self.state, families[family].utility(number))
        if witness.error <= self.tolerance:
            self.stopped = "calibrated"
            return None
        vectors = witness.utility.vectors(self.state, witness.rows)
        step = self.update.step(self.state, witness, vectors)
        if step is None:
            self.stopped = "no step"
            return None
        shift = -witness.sign * step.size
        move(self.state, self.update, witness.rows, vectors, shift)
        self.number += 1
        return Patch(
            witness.utility,
            witness.low,
            witness.high,
            shift,
            witness.error,
            loss_change=step.change / self.state.points,
            points=len(witness.rows),
        )
