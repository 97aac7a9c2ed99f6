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

from .archive import read_arrays
from .arrays import Array
from .atomic import atomic_path
from .class_order import class_codes
from .errors import InputError
from .forecast import PART, Forecast
from .kernels import bets
from .kernels.bucket_sums import Borders, Buckets
from .kernels.softmax import softmax
from .kernels.threads import row_blocks
from .keywords import PointOptions, check_keywords
from .layout import is_kept, points_of
from .option_checks import check_whole
from .scores import accuracies, brier_scores, log_losses, zero_likelihoods
from .streaming_evidence import CalibrationEvidence, calibration_evidence, log_evidence
from .streaming_result import Seen, StreamingResult, result_of
from .utilities.base import Block
from .utilities.function import Utility, utilities_of
from .utilities.payoffs import ClassWise, TopK
from .validation import both_classes, check_logits, check_probabilities, check_weights
from .weights import are_counts

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
            told = f"{sum(self._counts):,} utilities need {self.nbytes >> 20:,} MiB"
            fixes = ["choose utilities: TopK(ks=…), ClassWise(classes=…)", "use fewer buckets"]
            raise InputError(told, field="utilities", fixes=fixes)
        self._ranges = np.concatenate([one.bounds(classes) for one in self.utilities])
        self._seen: Seen | None = None
        self._log_largest = 0.0  # of the wealth at any look, which is 1 before the first point

    @property
    def nbytes(self) -> int:
        """The bytes that the buckets and the bets of all utilities take."""
        of_bets = bets.LEAVES * len(bets.BETS)
        return 8 * sum(self._counts) * (5 * self.borders.size + 2 + of_bets)

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
        """
        name = "logits" if self.logits else "probabilities"
        check_keywords(options, PointOptions)
        ignore_index, sample_weight = options.get("ignore_index"), options.get("sample_weight")
        if ignore_index is not None and not is_kept(labels, ignore_index).any():
            return
        points = points_of(probabilities, labels, ignore_index, name, sample_weight=sample_weight)
        probabilities, labels, sample_weight = points
        matrix = both_classes(probabilities, name, log_odds=self.logits)
        matrix = (check_logits if self.logits else check_probabilities)(matrix, name)
        if matrix.shape[1] != self.classes:
            told = f"{matrix.shape[1]} columns, expected {self.classes}"
            raise InputError(told, field=name, fixes="give one column per class")
        y = class_codes(labels, probabilities, matrix.shape, options.get("classes"))
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(y))
        self._seen = self.updated(self._seen, matrix, y, weights)
        self._look(self._seen)

    def nothing(self) -> Seen:
        """Return what is kept before the first point."""
        buckets = Buckets.empty(sum(self._counts), self.borders)
        return Seen(*buckets, np.zeros(8), np.zeros(1), bets.empty(sum(self._counts)))

    def updated(self, seen: Seen | None, matrix: Array, y: Array, weights: Array) -> Seen:
        """Add checked points to `seen`, in place; if this fails, they are taken away again."""
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
        blocks: list[Block] = []
        for utility in self.utilities:
            blocks.extend(utility.blocks(forecast, outcomes))
        ranges, first = self._ranges, 0
        for block in blocks:
            part = slice(first, first + len(block.predicted))
            self._check_range(block, ranges[part])
            first = part.stop
        size = outcomes.size[0, 0]
        if float(size) > 0:
            sums = [f(forecast, outcomes)[0] * size for f in (brier_scores, log_losses)]
            hits = accuracies(outcomes)[0] * size
            importances = 0 if are_counts(weights) else len(y)
            zeros = float(zero_likelihoods(forecast, outcomes)[0])
            seen.totals[:] += [len(y), size, hits, *sums, importances, zeros, 0]
        else:
            seen.totals[0] += len(y)
        seen.totals[-1] += np.sum((weights != 0) & (weights != 1))
        np.maximum(seen.largest, weights.max(), out=seen.largest)
        first = 0
        for block in blocks:
            part = slice(first, first + len(block.predicted))
            given = block.predicted, block.payoffs, block.codes[0], weights
            seen.buckets.at(part).add(*given, ranges[part], self.borders)
            bets.add(seen.log_wealth[part], *given, ranges[part])
            first = part.stop

    def _check_range(self, block: Block, ranges: Array) -> None:
        slack = 1e-9 * (ranges[:, 1] - ranges[:, 0]).clip(min=1)
        low, high = block.payoffs.min(axis=1), block.payoffs.max(axis=1)
        if bool(((low < ranges[:, 0] - slack) | (high > ranges[:, 1] + slack)).any()):
            told = f"values from {float(low.min()):g} to {float(high.max()):g} leave its bounds"
            fix = "define the method `bounds` of a class of your own"
            raise InputError(told, field="utility", fixes=[fix, "scale it to [-1, 1]"])

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
        if not _same(self._kind(), other._kind()) or self.utilities != other.utilities:
            raise InputError("has other utilities, classes or buckets", field="other")
        if other._seen is not None:
            seen = self._seen or self.nothing()
            self._seen = seen.with_points_of(other._seen)
            self._look(self._seen)
        return self

    def _look(self, seen: Seen) -> None:
        """Keep the largest wealth of bets against calibration at any look."""
        self._log_largest = max(self._log_largest, log_evidence(seen.log_wealth))

    @property
    def has_weights(self) -> bool:
        """Whether a point has another weight than 0 or 1."""
        return self._seen is not None and bool(self._seen.totals[-1])

    def evidence(self) -> CalibrationEvidence:
        """Return the evidence against calibration, which is valid at any look.

        Raises:
            InputError: a point has another weight than 0 or 1. Such a point would have to be bet
                on in proportion to the largest weight of all points, which are not over.
        """
        seen = self._seen or self.nothing()
        if self.has_weights:
            message = f"{int(seen.totals[-1]):,} points have another weight than 0 or 1"
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
        arrays: dict[str, Any] = dict(seen._asdict())
        arrays |= self._kind() | {"log_largest": np.array([self._log_largest])}
        if not isinstance(file, str | Path):
            np.savez(file, **arrays)
            return
        with atomic_path(file) as temporary, temporary.open("xb") as stream:
            np.savez(stream, **arrays)

    def load(self, file: str | Path | IO[bytes]) -> StreamingCalibration:
        """Take what a file holds in place of what is held, and return this.

        Raises:
            InputError: the file is damaged, or of other utilities, classes or buckets.
        """
        held, empty = read_arrays(file), self.nothing()._asdict()
        kept = {**empty, "log_largest": np.zeros(1)}
        shapes = all(k in held and held[k].shape == v.shape for k, v in kept.items())
        if not shapes or not _same(self._kind(), held):
            told = "of other utilities, classes or buckets"
            raise InputError(told, field="file", fixes="give the arguments that it was saved with")
        damaged = [name for name in kept if not _is_state(name, held[name])]
        if damaged:
            message = f"damaged, {', '.join(damaged)} cannot come from points"
            raise InputError(message, field="file", fixes="begin anew, or take a copy")
        self._seen = Seen(*(held[name].astype(np.float64) for name in empty))
        self._log_largest = float(held["log_largest"][0])
        return self

    def result(self) -> StreamingResult:
        """Return the bounds of all errors, and the scores; `InputError` before the first point."""
        if self._seen is None or float(self._seen.totals[1]) == 0:
            raise InputError("no points: call update before result")
        return result_of(self._seen, self._ranges, self.borders.bins)


def _is_state(name: str, values: Array) -> bool:
    """Return whether points can make these numbers: none is NaN, and no sum of sizes negative.

    Scores and variances may be negative by rounding, if a probability is just above 1.
    """
    if values.dtype.kind != "f" or bool(np.isnan(values).any()):
        return False
    return name not in ("sums", "largest") or bool((values >= 0).all())


def _same(kind: dict[str, Any], held: dict[str, Any]) -> bool:
    return all(np.array_equal(held.get(name, ()), value) for name, value in kind.items())
