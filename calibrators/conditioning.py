"""What every calibrator sees: possible classes only, and classes that have calibration points.

Three kinds of data ruin fits that are good otherwise. They are handled here, for all calibrators.

- *Impossible classes.* Options that a question does not have are padded with -1e9, with the least
  number of a type, or with -inf. No point has such a class, and its value means nothing.
- *Zeros of few votes.* A class that none of ten neighbours votes for has the probability 0, which
  is raised to 1e-12. Some points do have such a class, and the likelihood then sees little else.
- *Classes without a calibration point.* The likelihood alone would send them to 0. Temperature
  scaling expects μ points of such a class. Its probabilities are multiplied by ½ / (μ + ½), as if
  half a point of μ + ½ had been seen, which changes little where few were to be expected.

The model: let q = softmax(β z) over the possible classes of a row. Each of its m other classes has
the weight w beside their sum of 1, so the probability w / (1 + m w). β and w maximise the
likelihood, and they separate: β is the inverse temperature of the points of possible classes, and w
depends on how many points have one of the other classes; it is 0 for paddings that no point has.
The calibrator is fitted on logits that give the other classes this probability, whatever they were.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR
from utility_calibration.metrics.validation import InputError

from .losses import row_weights
from .solvers.root import solve_increasing
from .solvers.temperature import fit_temperature

FAR = 30.0  # a padding lies this many median gaps of the two largest logits below the row's largest
OCTAVE, HOLE = 4, 3
"""Distances to the largest logit are counted in quarters of octaves. Between paddings and other
logits at least three octaves, a factor of eight, are empty."""
BEYOND = 50.0  # times further below than any before: there a logit of a new point is a padding
SAMPLED_ROWS = 2000  # number of rows that the median gap is computed from
LOG_SUM = 1e-4  # log-probabilities sum to one within this share, in float32 as well
ZERO = math.log(LIKELIHOOD_FLOOR) + LOG_SUM
"""A log-probability of at most this is the logarithm of a probability of 0 that was raised."""
HALF = 0.5
"""Points that are counted as having a zero in addition, and as many that have none (Jeffreys). A
few points without a zero vote do not show that there is none."""
RARE = math.log(1e-6)
"""Log-weight of an impossible class in the fit; afterwards its probability becomes 0."""
STEEPEST = 4.0  # with β up to this, an impossible class is as rare in the softmax without β
SLOPES = 100.0  # β is within this factor of one over the median gap, so filled logits are moderate


@dataclass(frozen=True)
class Conditioning:
    """What is known about a classifier's impossible and absent classes.

    Logits of at most `zero` are zeros (-inf if only -inf is one), and logits `gap` below the
    largest of their row are paddings. `beta` is the inverse temperature of the possible classes,
    and `log_weight` is ln w, -inf if no calibration point has a class that is marked. `present`,
    int64 [P], are the classes that have calibration points; with `whole` the calibrator gets the
    others, too. `kept`, float64 [C], multiplies their probabilities.
    """

    zero: float
    gap: float
    beta: float
    log_weight: float
    present: Tensor
    kept: Tensor
    whole: bool = False

    def filled(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return finite logits [n, C] and the marked entries, bool [n, C], or None without any."""
        low, top = torch.aminmax(logits, dim=1)
        if bool(((low <= self.zero) | (top - low >= self.gap)).any()):
            return self._filled(logits.double())
        return logits, None

    def _filled(self, z: Tensor) -> tuple[Tensor, Tensor]:
        top = z.amax(dim=1, keepdim=True)
        below = z - top
        marked = ((z <= self.zero) | (-below >= self.gap)) & (below < 0)
        rest = torch.where(marked, -math.inf, self.beta * below).logsumexp(dim=1, keepdim=True)
        is_never = self.log_weight == -math.inf
        log_weight = RARE * min(max(self.beta, 1.0), STEEPEST) if is_never else self.log_weight
        return torch.where(marked, top + (rest + log_weight) / self.beta, z), marked

    def seen(self, logits: Tensor) -> Tensor:
        """Return the finite logits that the calibrator is fitted on, [n, P] or [n, C]."""
        finite = self.filled(logits)[0]
        is_all = self.whole or len(self.present) == logits.shape[1]
        return finite if is_all else finite[:, self.present].contiguous()

    def predicted(
        self,
        logits: Tensor,
        calibrator: Callable[[Tensor], Tensor],
        buffers: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return the calibrator's probabilities of all classes [n, C].

        An absent class has `kept` times the probability of temperature scaling, and the others
        share the rest as the calibrator says. If only one class is present, nothing was learned. A
        module gives its own `present` and `kept`, and gets operations that exporters accept; else
        the result is float64.
        """
        is_module = buffers is not None
        z, marked = self._filled(logits) if is_module else self.filled(logits)
        present, kept = buffers or (self.present, self.kept)
        if len(present) == z.shape[1]:
            p = calibrator(z)
        else:
            p = torch.softmax(self.beta * z, dim=1) if is_module else softmax(z, self.beta)
            if len(present) > 1:
                p = p * kept
                p = p / p.sum(dim=1, keepdim=True)
                own = calibrator(z)[:, present] if self.whole else calibrator(z[:, present])
                if self.whole:
                    own = own / own.sum(dim=1, keepdim=True).clamp(min=LIKELIHOOD_FLOOR)
                own = own * p[:, present].sum(dim=1, keepdim=True)
                p = p.index_copy(1, present, own).clamp(max=1.0)  # rounding may exceed 1
        if marked is None:
            return p
        never = marked if self.log_weight == -math.inf else torch.isneginf(logits)
        rest = torch.where(never, 0.0, p)  # and a row's other classes share its sum
        rest = torch.where(rest.sum(dim=1, keepdim=True) > 0, rest, (~never).to(p.dtype))
        return (rest * (p.sum(dim=1, keepdim=True) / rest.sum(dim=1, keepdim=True))).clamp(max=1.0)


class ConditionedModule(nn.Module):
    """`Conditioning.predicted` for a calibrator's module."""

    present: Tensor
    kept: Tensor

    def __init__(self, known: Conditioning, module: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.known, self.module, self.dtype = known, module, dtype
        self.register_buffer("present", known.present)
        self.register_buffer("kept", known.kept.to(dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        buffers = self.present, self.kept
        return self.known.predicted(logits.to(self.dtype), self.module, buffers)


def _largest_zero(logits: Tensor) -> float:
    """Return the largest logit that was made from a probability of 0; -inf if none was.

    Only log-probabilities have such logits: `from_probabilities` raises their zeros to 1e-12.
    """
    low, top = map(float, torch.aminmax(logits))
    if top > LOG_SUM or not ZERO - 1 < low <= ZERO:
        return -math.inf
    sums = logits.double().logsumexp(dim=1)
    return ZERO if bool((sums.abs() <= LOG_SUM).all()) else -math.inf


def _median_gap(logits: Tensor) -> float:
    """Return the median gap of a row's two largest logits; 0 if it is infinite."""
    rows = logits[:: max(1, len(logits) // SAMPLED_ROWS)]
    two = rows.topk(2, dim=1).values.double()
    gap = float((two[:, 0] - two[:, 1]).median())
    return gap if math.isfinite(gap) else 0.0


def _padding_gap(logits: Tensor, scale: float) -> float:
    """Return the distance below a row's largest logit from which on a logit is a padding.

    It is the middle of the first hole of three octaves among the distances, if that begins above
    `scale` and ends above `FAR` times it. If there is none, it is beyond all distances seen.
    """

    def distances(rows: Tensor) -> Tensor:
        away = rows.double()
        away = away.amax(dim=1, keepdim=True) - away
        return away[(away > 0) & torch.isfinite(away)]

    low, top = (ends.double() for ends in torch.aminmax(logits, dim=1))
    if bool(torch.isneginf(low).any()):
        low = torch.where(torch.isneginf(logits), torch.inf, logits).amin(dim=1).double()
    if not (widest := float((top - low).max())):
        return math.inf
    if widest > FAR * scale:
        blocks = [logits[start:stop] for start, stop in row_blocks(*logits.shape)]
        scale = scale or min(float(d.amin()) for d in map(distances, blocks) if len(d))
        counts = torch.zeros(int(OCTAVE * math.log2(widest / scale)) + 2, dtype=torch.int64)
        for block in blocks:
            bins = ((distances(block) / scale).log2() * OCTAVE).clamp(min=0)
            counts += torch.bincount(bins.long().cpu(), minlength=len(counts))
        filled = np.union1d([0], counts.nonzero()[:, 0].numpy())
        for below, above in pairwise(filled):
            if above - below > OCTAVE * HOLE and above >= OCTAVE * math.log2(FAR):
                return float(scale * 2 ** ((below + 1 + above) / 2 / OCTAVE))
    return BEYOND * widest


def condition(
    logits: Tensor, labels: Tensor, weights: Tensor | None = None, *, whole: bool, zeros: bool
) -> Conditioning:
    """Learn from logits [n, C] (finite or -inf), labels and weights [n] of calibration points.

    With `zeros=False` zeros of probabilities stay as they are.
    """
    never = torch.isneginf(logits.gather(1, labels[:, None])[:, 0])
    if bool(never.any()):
        raise InputError(
            f"{int(never.sum())} points have a class whose logit is -inf, the first",
            field="labels",
            row=int(never.nonzero()[0]),
            fixes=[
                "correct the label or the logit",
                'give the probabilities of these logarithms (inputs="probabilities")',
            ],
        )
    present = torch.bincount(labels, minlength=logits.shape[1]).nonzero()[:, 0]
    scale = _median_gap(logits)
    zero = _largest_zero(logits) if zeros else -math.inf
    gap, beta = _padding_gap(logits, scale), 1 / (scale or 1.0)
    kept = torch.ones(logits.shape[1], dtype=torch.float64, device=logits.device)
    marks = Conditioning(zero, gap, beta, -math.inf, present, kept, whole)
    unmarked = replace(marks, zero=-math.inf, gap=math.inf)
    data = logits, labels, weights
    known = _learned(marks, *data) or _learned(unmarked, *data) or unmarked
    if len(present) < len(kept):
        shares = row_weights(weights, logits)
        for start, stop in row_blocks(*logits.shape):  # the expected counts, then the factors
            p = softmax(known.filled(logits[start:stop])[0], known.beta)
            kept = kept + 2 * shares[start:stop] @ p
        kept = 1 / kept
        kept[present] = 1
    return replace(known, kept=kept)


def _learned(
    marks: Conditioning, logits: Tensor, labels: Tensor, weights: Tensor | None
) -> Conditioning | None:
    """Return `marks` with β and w; None if plain temperature scaling has a better likelihood."""
    marked, present = marks.filled(logits)[1], marks.present
    if len(present) == 1:
        return replace(marks, beta=1.0)
    if marked is None and len(present) == logits.shape[1]:
        return marks
    codes = torch.searchsorted(present, labels)
    columns, shares = logits[:, present], row_weights(weights, logits)
    if marked is None:
        return replace(marks, beta=fit_temperature(columns, codes, weights=weights).beta)
    hit = marked.gather(1, labels[:, None])[:, 0]
    masked, rows = columns.double().masked_fill(marked[:, present], -math.inf), ~hit
    if not bool(rows.any()):
        return None
    fit = fit_temperature(masked[rows], codes[rows], weights=shares[rows])
    hits, counts = float(shares[hit].sum()), marked[:, present].sum(dim=1).double()
    log_weight = _log_weight(counts, shares, hits, HALF if marks.zero > -math.inf else 0.0)
    if hits:
        total = fit.nll * float(shares[rows].sum()) - hits * log_weight
        total += float((shares * torch.log1p(counts * math.exp(log_weight))).sum())
        if fit_temperature(columns, codes, weights=weights).nll * float(shares.sum()) < total:
            return None
    beta = min(max(fit.beta, marks.beta / SLOPES), marks.beta * SLOPES)
    return replace(marks, beta=beta, log_weight=log_weight)


def _log_weight(counts: Tensor, shares: Tensor, hits: float, half: float) -> float:
    """Return ln w, where Σ shares m w / (1 + m w) = hits; `counts` m [n] are of marked classes.

    `half` points with a marked class and as many without are added.
    """
    hits, shares = hits + half, shares * (counts > 0)
    if not hits:
        return -math.inf
    added = counts[counts > 0].mean().reshape(1)
    logs = torch.cat([counts, added]).clamp(min=1).log()
    shares = torch.cat([shares, torch.full_like(added, 2 * half)])

    def excess(x: float) -> tuple[float, float, bool]:
        share = torch.sigmoid(logs + x)
        value = float((shares * share).sum()) - hits
        return value, float((shares * share * (1 - share)).sum()), abs(value) <= 1e-9 * hits

    return solve_increasing(excess, -5.0, -60.0, 60.0)[0]
