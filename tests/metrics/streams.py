"""Points of random forecasts, and streams that have seen them."""

from typing import Any

import numpy as np

from utility_calibration import metrics as m

ROUNDING = 1e-12


def points(seed: int) -> tuple[Any, Any, Any]:
    """A forecast with ties, zeros and ones, its labels, and whole weights or None."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(1, 60)), int(rng.integers(2, 6))
    p = rng.dirichlet(np.full(classes, 10.0 ** rng.uniform(-2, 1)), size=n)
    if seed % 3 == 1:  # ties, and predictions on round numbers
        p = rng.multinomial(8, np.full(classes, 1 / classes), size=n) / 8
    if seed % 3 == 2:
        p[rng.random(n) < 0.5] = np.eye(classes)[rng.integers(classes)]
    labels = rng.integers(classes, size=n)
    weights = rng.integers(1, 4, size=n) if seed % 2 else None
    return p, labels, weights


def streamed(utility: Any, p: Any, y: Any, w: Any = None, size: int = 17, **options: Any) -> Any:
    """A stream that has seen the points in batches of `size`."""
    streaming = m.StreamingCalibration(utility, p.shape[1], **options)
    for start in range(0, len(p), size):
        rows = slice(start, start + size)
        streaming.update(p[rows], y[rows], sample_weight=None if w is None else w[rows])
    return streaming
