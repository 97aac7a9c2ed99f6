"""What every calibrator sees: possible classes only, and classes that have calibration points.

Three kinds of data ruin fits that are good otherwise. They are handled here, for all calibrators.

- *Impossible classes.* Options that a question does not have are padded with -1e9, with the least
  number of a type, or with -inf. No point has such a class, and its value means nothing.
- *Zeros of few votes.* A class that none of ten neighbours votes for has the probability 0, which
  is raised to 1e-12. Some points do have such a class, and the likelihood then sees little else.
- *Classes without a calibration point.* The likelihood alone would send them to 0. They get their
  probability from temperature scaling, times a factor (`absent.py`). It is about 1 where few points
  were to be expected, and near 0 where many were and none came.

The model: let q = softmax(β z) over the possible classes of a row. Each of its m other classes has
the weight w beside their sum of 1, so the probability w / (1 + m w). β and w maximise the
likelihood, and they separate: β is the inverse temperature of the points of possible classes, and w
depends on how many points have one of the other classes; it is 0 for paddings that no point has.
The calibrator is fitted on logits that give the other classes this probability, whatever they were.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from .absent import absent_factors
from .extremes import row_extremes
from .losses import row_weights
from .paddings import largest_zero, median_gap, padding_gap
from .solvers.root import solve_increasing
from .solvers.temperature import fit_temperature

HALF = 0.5
"""Points that are counted as having a zero in addition, and as many that have none (Jeffreys). A
few points without a zero vote do not show that there is none."""
RARE = math.log(1e-6)
"""Log-weight of an impossible class in the fit; afterwards its probability becomes 0."""
STEEPEST = 4.0  # with β up to this, an impossible class is as rare in the softmax without β
SLOPES = 100.0  # β is within this factor of one over the median gap, so filled logits are moderate


@dataclass(frozen=True)
class Conditioning:
    """What is known about a classifier's impossible and absent classes."""

    zero: float
    """Logits of at most this are zeros; -inf if only -inf is one."""
    gap: float
    """Logits so far below the largest of their row are paddings."""
    beta: float
    """The inverse temperature of the possible classes."""
    log_weight: float
    """ln w. It is -inf if calibration points have paddings, but none of them is of such a class; a
    padding then has the probability 0."""
    present: Array
    """int64 [P], the classes that have calibration points."""
    factors: Array
    """float64 [C], by which the probabilities of absent classes are multiplied."""
    whole: bool = False
    """Whether the calibrator gets the absent classes, too."""

    @property
    def log_share(self) -> float:
        """ln w in the fit."""
        if self.log_weight > -math.inf:
            return self.log_weight
        # In place of 0, which has no logarithm. A steeper map makes the class even rarer.
        return RARE * min(max(self.beta, 1.0), STEEPEST)

    def filled(self, logits: Array) -> tuple[Array, Array | None]:
        """Return finite logits [n, C] and the marked entries, bool [n, C], or None without any."""
        low, top = row_extremes(logits)
        if bool(((low <= self.zero) | (top - low >= self.gap)).any()):
            return self._filled(logits.astype(np.float64, copy=False))
        return logits, None

    def _filled(self, z: Array) -> tuple[Array, Array]:
        top = z.max(axis=1, keepdims=True)
        below = z - top
        marked = ((z <= self.zero) | (-below >= self.gap)) & (below < 0)
        from scipy.special import logsumexp  # it takes long to import

        rest = logsumexp(np.where(marked, -math.inf, self.beta * below), axis=1, keepdims=True)
        return np.where(marked, top + (rest + self.log_share) / self.beta, z), marked

    def seen(self, logits: Array) -> Array:
        """Return the finite logits that the calibrator is fitted on, [n, P] or [n, C]."""
        finite = self.filled(logits)[0]
        is_all = self.whole or len(self.present) == logits.shape[1]
        return finite if is_all else np.ascontiguousarray(finite[:, self.present])

    def predicted(
        self,
        logits: Array,
        calibrator: Callable[[Array], Array],
    ) -> Array:
        """Return the calibrator's probabilities of all classes [n, C].

        An absent class has `factors` times the probability of temperature scaling, and the others
        share the rest as the calibrator says. If only one class is present, nothing was learned.
        """
        z, marked = self.filled(logits)
        has_all = len(self.present) == z.shape[1]
        p = calibrator(z) if has_all else self._with_absent(z, calibrator)
        if marked is None:
            return p
        # An impossible class has the probability 0, and a row's other classes share its sum.
        never = marked if self.log_weight == -math.inf else np.isneginf(logits)
        rest = np.where(never, 0.0, p)
        rest = np.where(rest.sum(axis=1, keepdims=True) > 0, rest, (~never).astype(p.dtype))
        scale = p.sum(axis=1, keepdims=True) / rest.sum(axis=1, keepdims=True)
        return (rest * scale).clip(max=1.0)

    def _with_absent(self, z: Array, calibrator: Callable[[Array], Array]) -> Array:
        """Return the probabilities of all classes at finite logits, of which some are absent."""
        present = self.present
        p = softmax(z, self.beta)
        if len(present) == 1:
            return p  # nothing was learned
        p = p * self.factors
        p = p / p.sum(axis=1, keepdims=True)
        if self.whole:
            mapped = calibrator(z)[:, present]
            mapped = mapped / mapped.sum(axis=1, keepdims=True).clip(min=LIKELIHOOD_FLOOR)
        else:
            mapped = calibrator(z[:, present])
        p[:, present] = mapped * p[:, present].sum(axis=1, keepdims=True)
        return p.clip(max=1.0)  # rounding may exceed 1


def condition(
    logits: Array, labels: Array, weights: Array | None = None, *, whole: bool, zeros: bool
) -> Conditioning:
    """Learn from logits [n, C] (finite or -inf), labels and weights [n] of calibration points.

    With `zeros=False` zeros of probabilities stay as they are.
    """
    never = np.isneginf(logits[np.arange(len(logits)), labels])
    if bool(never.any()):
        raise InputError(
            f"{int(never.sum())} points have a class whose logit is -inf, the first",
            field="labels",
            row=int(never.argmax()),
            fixes=[
                "correct the label or the logit",
                'give the probabilities of these logarithms (inputs="probabilities")',
            ],
        )
    present = np.bincount(labels, minlength=logits.shape[1]).nonzero()[0]
    scale = median_gap(logits)
    gap, has_paddings = padding_gap(logits, scale)
    factors = np.ones(logits.shape[1])
    marks = Conditioning(
        zero=largest_zero(logits) if zeros else -math.inf,
        gap=gap,
        beta=1 / (scale or 1.0),
        log_weight=-math.inf,
        present=present,
        factors=factors,
        whole=whole,
    )
    unmarked = replace(marks, zero=-math.inf, gap=math.inf)
    data = logits, labels, weights
    learned = _learned(marks, *data) or _learned(unmarked, *data) or unmarked
    if not has_paddings and learned.log_weight == -math.inf:
        # No point shows that a class is impossible, so its probability does not become 0.
        learned = replace(learned, log_weight=learned.log_share)
    if len(present) < len(factors):
        shares = row_weights(weights, logits)
        observed = np.bincount(labels, shares, minlength=len(factors))
        expected = np.zeros(len(factors))
        for start, stop in row_blocks(*logits.shape):
            p = softmax(learned.filled(logits[start:stop])[0], learned.beta)
            expected += shares[start:stop] @ p
        factors = absent_factors(observed, expected)
        factors[present] = 1
    return replace(learned, factors=factors)


def _learned(
    marks: Conditioning, logits: Array, labels: Array, weights: Array | None
) -> Conditioning | None:
    """Return `marks` with β and w; None if plain temperature scaling has a better likelihood."""
    _, marked = marks.filled(logits)
    present = marks.present
    if len(present) == 1:
        return replace(marks, beta=1.0)
    if marked is None and len(present) == logits.shape[1]:
        return marks
    codes = np.searchsorted(present, labels)
    columns, shares = logits[:, present], row_weights(weights, logits)
    if marked is None:
        return replace(marks, beta=fit_temperature(columns, codes, weights=weights).beta)
    # β is that of the points of possible classes, w depends on how many have a marked one.
    hit = marked[np.arange(len(labels)), labels]
    rows = ~hit
    if not bool(rows.any()):
        return None
    masked = np.where(marked[:, present], -math.inf, columns.astype(np.float64))
    fit = fit_temperature(masked[rows], codes[rows], weights=shares[rows])
    hits = float(shares[hit].sum())
    counts = marked[:, present].sum(axis=1).astype(np.float64)
    half = HALF if marks.zero > -math.inf else 0.0
    log_weight = _log_weight(counts, shares, hits, half)
    if hits:
        total = fit.nll * float(shares[rows].sum()) - hits * log_weight
        total += float((shares * np.log1p(counts * math.exp(log_weight))).sum())
        if fit_temperature(columns, codes, weights=weights).nll * float(shares.sum()) < total:
            return None
    beta = min(max(fit.beta, marks.beta / SLOPES), marks.beta * SLOPES)
    return replace(marks, beta=beta, log_weight=log_weight)


def _log_weight(counts: Array, shares: Array, hits: float, half: float) -> float:
    """Return ln w, where Σ shares m w / (1 + m w) = hits; `counts` m [n] are of marked classes.

    `half` points with a marked class and as many without are added.
    """
    from scipy.special import expit  # it takes long to import

    hits = hits + half
    shares = shares * (counts > 0)
    if not hits:
        return -math.inf
    added = counts[counts > 0].mean().reshape(1)
    logs = np.log(np.concatenate([counts, added]).clip(min=1))
    shares = np.concatenate([shares, np.full_like(added, 2 * half)])

    def excess(x: float) -> tuple[float, float, bool]:
        share = expit(logs + x)
        value = float((shares * share).sum()) - hits
        return value, float((shares * share * (1 - share)).sum()), abs(value) <= 1e-9 * hits

    return solve_increasing(excess, -5.0, -60.0, 60.0)[0]
