"""What any recalibration could still gain: an estimate of the calibration error of a proper score.

A proper score is the score of the recalibrated forecast plus a calibration error. The latter is the
largest gain over all maps g of the forecast (Berta et al. 2026, arXiv 2602.24230). Here g is the
pool of maps (`pooled/`), fitted to four fifths of the points and judged on the last fifth. A map
that is fitted to few points loses a little, so the estimate is too small rather than too large.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.keywords import PointOptions
from utility_calibration.metrics.scores import checked
from utility_calibration.metrics.weights import as_counts

from .inputs import from_probabilities
from .losses import Loss
from .patching.state import PatchedForecast
from .patching.tuning import FOLDS, folds_of
from .pooled.pool import PooledScaling

NORMAL = 1.959963984540054  # quantile of a two-sided 95 % interval


class RecalibrationGain(NamedTuple):
    """What recalibration gains, in nats or squared errors."""

    gain: float
    """The mean of a point."""
    half_width: float
    """Of its 95 % interval: that of the paired difference of the losses, point by point."""


def recalibration_gain(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    loss: Loss = "nll",
    seed: int = 0,
    **options: Unpack[PointOptions],
) -> RecalibrationGain:
    """Return how much smaller the loss of a recalibrated forecast is on points held out of its fit.

    >>> import numpy as np
    >>> p = np.tile([[0.9, 0.1], [0.1, 0.9]], (100, 1))  # always 90 % sure, right in 60 %
    >>> labels = np.arange(200) % 2 ^ (np.arange(200) % 5 < 2)
    >>> round(recalibration_gain(p, labels).gain, 2)
    0.3

    Args:
        probabilities, labels: as in `metrics.accuracy`; at least 10 points.
        **options: as in `accuracy`. Points of weight 0 are left out.
        loss: "nll" or "brier".
        seed: of the five folds.

    It takes six pooled fits for each fold.
    """
    if loss not in ("nll", "brier"):
        raise InputError(f"{loss!r}", field="loss", fixes="choose nll or brier")
    forecast, outcomes = checked(probabilities, labels, **options)
    p, y = forecast.probabilities, outcomes.labels[0]
    weights = None
    if outcomes.weights is not None:
        counted = outcomes.weights[0] > 0
        p, y = p[counted], y[counted]
        # Of all points together: some importances of a fold alone could look like counts.
        weights = as_counts(outcomes.weights[0][counted])
    if len(y) < 2 * FOLDS:
        raise InputError(f"{len(y)} points, at least {2 * FOLDS} are needed", field="labels")
    logits = from_probabilities(p)
    recalibrated = np.empty_like(p)
    for outside, inside in folds_of(y, seed):
        shares = None if weights is None else weights[outside]
        fitted = PooledScaling(seed=seed).fit(logits[outside], y[outside], shares)
        recalibrated[inside] = fitted.predict_proba(logits[inside])
    gains = PatchedForecast(p, y).losses(loss) - PatchedForecast(recalibrated, y).losses(loss)
    n = len(gains)
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    gain = float((shares * gains).sum())
    variance = np.square(shares * (gains - gain)).sum() * (n / (n - 1))
    return RecalibrationGain(gain, NORMAL * float(np.sqrt(variance)))
