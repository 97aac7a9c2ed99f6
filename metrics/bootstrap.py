"""The bootstrap over points: how far a metric, or a mean over splits, would move on other points.

Each repetition draws all n points of the data set with replacement, once; how often a point came
out is its weight in every split that tests it. Over repetitions the mean over splits scatters as
its standard error (Efron & Tibshirani 1993, ch. 6), the covariance of splits that share their
points included. Use mean ± 1.96 standard errors, not the percentiles: repeated points inflate UC
itself, which shifts every percentile up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from metrics.floor import DRAWN_TOGETHER

LARGEST = 50_000
"""With more points the splits' own spread says enough, and n · repetitions costs."""


def resampled_weights(
    points: Tensor, population: int, repetitions: int, seed: int, size: int
) -> Iterator[Tensor]:
    """Yield how often each of `points` was drawn, float64 [r, n], as many repetitions as fit.

    Args:
        points: int64 [n], numbers of points among the `population` that is resampled.
        size: the n that decides how many repetitions fit: samples of one forecast stay in step.
    """
    together = max(1, DRAWN_TOGETHER // size)
    chosen = points.cpu().numpy()
    for start in range(0, repetitions, together):
        rows = [
            _counts(population, seed, repetition)[chosen]
            for repetition in range(start, min(repetitions, start + together))
        ]
        yield torch.from_numpy(np.stack(rows)).to(torch.float64).to(points.device)


def _counts(population: int, seed: int, repetition: int) -> np.ndarray:
    drawn = np.random.default_rng([seed, repetition]).integers(population, size=population)
    return np.bincount(drawn, minlength=population)
