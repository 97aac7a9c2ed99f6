"""The noise floor: errors of a forecast whose labels were drawn from itself.

Such a forecast is perfectly calibrated, so what it shows on n points is sampling alone: a Monte
Carlo test of calibration (Vaicenavicius et al. 2019; "consistency resampling", Bröcker & Smith
2007). Each repetition draws one label per point; the uniform behind it belongs to seed, repetition
and the point's number in the whole data set. A point that several splits test, or several methods
predict, thus draws its label from the same uniform, and the mean over splits of a repetition is a
draw of the mean over splits that a table prints.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.kernels.uniforms import hashed_uniforms, stream_keys

DRAWN_TOGETHER = 1 << 23
"""Labels drawn at a time, which bounds the memory: 64 MB for each of labels, ranks, uniforms."""


def redrawn_outcomes(
    forecast: Forecast, points: Tensor, repetitions: int, seed: int, size: int
) -> Iterator[Outcomes]:
    """Yield `repetitions` draws of all labels from the forecast, as many at a time as fit.

    Args:
        points: int64 [n], the number of each point in the whole data set.
        size: the n that decides how many draws fit: samples of one forecast stay in step.
    """
    if not repetitions:
        return
    keys = stream_keys(seed, repetitions).to(points.device)
    for some in keys.split(max(1, DRAWN_TOGETHER // size)):
        yield forecast.redraw(hashed_uniforms(some, points[:, None]).T)


def floor_of(draws: Tensor, observed: float) -> dict[str, float]:
    """Mean and 95 % quantile of an error's draws, and the p-value of the observed error.

    The p-value counts the observed error among the draws, so a test at 5 % has at most that size
    (Phipson & Smyth 2010). Empty without draws.
    """
    if not len(draws):
        return {}
    as_bad = int((draws >= observed).sum())
    return {
        "mean": float(draws.mean()),
        "q95": float(torch.quantile(draws, 0.95)),
        "p_value": (1 + as_bad) / (1 + len(draws)),
    }
