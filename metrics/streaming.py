"""Utility calibration in one pass, over any number of points, shards and processes.

    streaming = StreamingCalibration(TopK(), classes=10)
    for p, y in batches:
        streaming.update(p, y)
    streaming.result().upper

What is kept has a fixed size, and it adds up: `merge` joins what several processes have seen. The
error of a utility is known to lie between two numbers (`kernels/bucket_sums.py` says why), which
are equal where no bucket holds residuals of both signs.

    streaming.evidence().is_alarm()

asks after any batch, as often as one likes, whether the forecast is still calibrated
(`streaming_evidence.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .errors import InputError
from .forecast import PART, Forecast, Outcomes
from .kernels import bets
from .kernels.bucket_sums import Borders, Buckets
from .kernels.softmax import softmax
from .kernels.threads import row_blocks
from .keywords import PointOptions
from .option_checks import check_whole
from .precision import warn_of_lost_digits
from .streaming_batch import check_same_columns, checked_batch
from .streaming_evidence import CalibrationEvidence, calibration_evidence, log_evidence
from .streaming_file import State, are_equal_kinds, read_state, write_state
from .streaming_result import Seen, StreamingResult, Totals, result_of, totals_of
from .utilities.blocks import Block
from .utilities.function import Utility, utilities_of
from .utilities.standard import ClassWise, TopK

BUCKETS = 1000
"""Buckets of a utility at most: 39 KB."""
BINS = 15
LARGEST_STATE = 2 << 30
"""Bytes that the buckets of all utilities may take."""


class StreamingCalibration:
    """UC (eq. 3.2) of every utility of a class, or of several classes, from batches of points.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> streaming = StreamingCalibration(TopK(), classes=3)
    >>> for batch in ((p[:2], [0, 1]), (p[2:], [2, 1])):
    ...     streaming.update(*batch)
    >>> streaming.result().upper.round(3)
    array([0.125, 0.3  , 0.   ])

    Args:
        utility: a utility class, a function p [n, C] -> u⃗ [n, C] on NumPy arrays, or several
            of these. Values outside `UtilityClass.bounds` are refused.
        classes: C.
        buckets: the largest number of buckets per utility, 1,000 if not given. More of them
            leave a smaller gap between the bounds.
        logits: whether `update` is given logits, whose softmax is then taken in float64.
        bins: the number of bins of the binned errors.

    Raises:
        InputError: no utility, fewer than two classes, or so many utilities that their buckets
            take more than 2 GiB.

    `nbytes` is the size of what will be kept. It is taken at the first batch.
    """

    def __init__(
        self,
        utility: Utility | Iterable[Utility],
        classes: int,
        buckets: int | None = None,
        logits: bool = False,
        bins: int = BINS,
    ) -> None:
        check_whole(classes, "classes", 2)
        check_whole(bins, "bins", 1)
        most = BUCKETS if buckets is None else buckets
        check_whole(most, "buckets", Borders(0, bins).size)
        self.utilities = utilities_of(utility)
        self.classes, self.logits = classes, logits
        self.borders = Borders.at_most(most, bins)
        self._counts = [one.count(classes) for one in self.utilities]
        if self.nbytes > LARGEST_STATE:
            message = f"{sum(self._counts):,} utilities need {self.nbytes >> 20:,} MiB"
            fixes = ["choose utilities: TopK(ks=…), ClassWise(classes=…)", "use fewer buckets"]
            raise InputError(message, field="utilities", fixes=fixes)
        self._ranges = np.concatenate([one.bounds(classes) for one in self.utilities])
        self._seen: Seen | None = None
        self._columns: list[str] = []  # the names of the classes, where any batch had names
        self._log_largest = 0.0  # of the wealth at any look, which is 1 before the first point

    @property
    def nbytes(self) -> int:
        """The bytes that the buckets and the bets of all utilities take."""
        n_bets = bets.LEAVES * len(bets.BETS)
        return 8 * sum(self._counts) * (5 * self.borders.size + 2 + n_bets)

    def __repr__(self) -> str:
        several = ", ".join(map(repr, self.utilities))
        return f"StreamingCalibration([{several}], classes={self.classes}; {self.nbytes:,} bytes)"

    def update(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        **options: Unpack[PointOptions],
    ) -> None:
        """Add points, which come after those before; a batch that is refused changes nothing.

        Args:
            probabilities: [n, C], or logits if `logits`; for two classes [n] of class 1. With
                labels [B, …] also [B, C, …] or [B, …, C].
            labels: [n], numbers of classes, or names that `classes` has.
            **options: as in `accuracy`.

        Raises:
            InputError: as `accuracy`; another number of columns, or another order of them than
                before; utilities outside their bounds.
        """
        batch = checked_batch(probabilities, labels, self.classes, self.logits, options)
        if batch is None:
            return
        if self.logits:
            warn_of_lost_digits(batch.matrix)
        name = "logits" if self.logits else "probabilities"
        check_same_columns(batch.columns, self._columns, name)
        self._seen = self.updated(self._seen, batch.matrix, batch.labels, batch.weights)
        self._columns = batch.columns or self._columns
        self._look(self._seen)

    def nothing(self) -> Seen:
        """Return what is kept before the first point."""
        buckets = Buckets.empty(sum(self._counts), self.borders)
        totals = np.zeros(len(Totals._fields))
        return Seen(*buckets, totals, np.zeros(2), bets.empty(sum(self._counts)))

    def updated(self, seen: Seen | None, matrix: Array, y: Array, weights: Array) -> Seen:
        """Add checked points to `seen`, in place; if this fails, they are taken away again.

        Weights [n] are above 0.
        """
        if seen is None:
            seen = self.nothing()
        blocks = row_blocks(len(matrix), self.classes, max(PART, 64 * self.classes))
        before = [values.copy() for values in seen] if len(blocks) > 1 else []
        try:
            for start, stop in blocks:
                rows = slice(start, stop)
                self._add(seen, matrix[rows], y[rows], weights[rows])
        except BaseException:
            for values, old in zip(seen, before):
                values[...] = old
            raise
        return seen

    def _add(self, seen: Seen, matrix: Array, y: Array, weights: Array) -> None:
        """Add one block of rows. What can be refused is computed before anything is added."""
        p = softmax(matrix) if self.logits else matrix
        forecast = Forecast(p, depth=self._depth)
        outcomes = forecast.outcomes(y, weights)
        blocks = self._blocks(forecast, outcomes)
        for part, block in blocks:
            _check_range(block, self._ranges[part])

        seen.totals[:] += totals_of(forecast, outcomes, weights)
        np.maximum(seen.largest, [weights.max(), 1 / weights.min()], out=seen.largest)
        once = np.ones(len(weights))  # points of weights that differ are no evidence
        for part, block in blocks:
            points = block.predicted, block.payoffs, block.codes[0], weights
            seen.buckets.at(part).add(*points, self._ranges[part], self.borders)
            bets.add(seen.log_wealth[part], *points[:3], once, self._ranges[part])

    def _blocks(self, forecast: Forecast, outcomes: Outcomes) -> list[tuple[slice, Block]]:
        """Return the blocks of all utilities, each with its place among the m utilities."""
        blocks: list[tuple[slice, Block]] = []
        first = 0
        for utility in self.utilities:
            for block in utility.blocks(forecast, outcomes):
                last = first + len(block.predicted)
                blocks.append((slice(first, last), block))
                first = last
        return blocks

    @property
    def _depth(self) -> int | None:
        """How many of the largest probabilities are needed, all (None) in general."""
        depth = 1
        for utility in self.utilities:
            if isinstance(utility, TopK):
                depth = max(depth, self.classes if utility.ks is None else max(utility.ks))
            elif not isinstance(utility, ClassWise):
                return None
        return depth

    def merge(self, other: StreamingCalibration) -> StreamingCalibration:
        """Add what `other` has seen, and return this; in any order but for rounding.

        Only `evidence().log_largest` depends on the order. Merge in the order of time: the points
        of `other` come after those of this, and there is one look after all of them.
        """
        if not are_equal_kinds(self._kind(), other._kind()) or self.utilities != other.utilities:
            raise InputError("has other utilities, classes or buckets", field="other")
        check_same_columns(other._columns, self._columns, "other")
        if other._seen is not None:
            self._columns = other._columns or self._columns
            seen = self._seen or self.nothing()
            self._seen = seen.with_points_of(other._seen)
            self._look(self._seen)
        return self

    def _look(self, seen: Seen) -> None:
        """Keep the largest wealth of bets against calibration at any look."""
        self._log_largest = max(self._log_largest, log_evidence(seen.log_wealth))

    @property
    def has_weights(self) -> bool:
        """Whether the weights of the points say something: equal ones that are no counts do not."""
        return self._seen is not None and self._seen.has_weights

    def evidence(self) -> CalibrationEvidence:
        """Return the evidence against calibration, which is valid at any look.

        Raises:
            InputError: points have weights that differ, or counts above 1. A point would have to be
                bet on in proportion to the largest weight of all points, which are not over.
        """
        seen = self._seen or self.nothing()
        if self.has_weights:
            low, high = 1 / seen.largest[1], seen.largest[0]
            message = f"the weights of the points are from {low:.6g} to {high:.6g}"
            fixes = ["update without sample_weight", "take result().noise_floor(), for one look"]
            raise InputError(message, field="sample_weight", fixes=fixes)
        return calibration_evidence(seen.log_wealth, self._log_largest, self._ranges)

    def _kind(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return what two of these must share, besides equal utilities."""
        return {
            "classes": np.array([self.classes, *self.borders, int(self.logits)]),
            "names": np.array([utility.digest() for utility in self.utilities]),
            "ranges": self._ranges,
        }

    def save(self, file: str | Path | IO[bytes]) -> None:
        """Write an npz, in whole or not at all; `load` needs the same arguments as this object."""
        seen = self._seen or self.nothing()
        write_state(file, self._kind(), State(seen, self._log_largest, self._columns))

    def load(self, file: str | Path | IO[bytes]) -> StreamingCalibration:
        """Replace all that this has seen by what a file says, and return this.

        Utilities that are functions, or of a class of your own, count by their code, which another
        version of Python compiles otherwise.

        Raises:
            InputError: the file is damaged, or of other utilities, classes or buckets.
            MissingResource: there is no such file.
        """
        state = read_state(file, self._kind(), self.nothing())
        self._seen, self._log_largest, self._columns = state
        return self

    def result(self) -> StreamingResult:
        """Return the bounds of all errors, and the scores; `InputError` before the first point."""
        if self._seen is None or Totals(*self._seen.totals).weight == 0:
            raise InputError("no points: call update before result")
        return result_of(self._seen, self._ranges, self.borders.bins)


def _check_range(block: Block, ranges: Array) -> None:
    """Raise `InputError` if payoffs lie outside of the `ranges` [b, 2], where buckets lie."""
    slack = 1e-9 * (ranges[:, 1] - ranges[:, 0]).clip(min=1)
    low, high = block.payoffs.min(axis=1), block.payoffs.max(axis=1)
    is_outside = (low < ranges[:, 0] - slack) | (high > ranges[:, 1] + slack)
    if bool(is_outside.any()):
        message = f"values from {float(low.min()):g} to {float(high.max()):g} leave its bounds"
        fixes = ["define the method `bounds` of a class of your own", "scale it to [-1, 1]"]
        raise InputError(message, field="utility", fixes=fixes)
