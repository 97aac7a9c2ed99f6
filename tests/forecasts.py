"""What the tests of metrics and calibrators share: awkward forecasts."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]


def labels_from(p: Floats, random: np.random.Generator) -> NDArray[np.int64]:
    """Labels [n], one drawn from each row of the probabilities [n, C]."""
    below = p.cumsum(axis=1) < random.random((len(p), 1))
    return below.sum(axis=1).clip(max=p.shape[1] - 1)


def forecast_of(kind: str, n: int, classes: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Probabilities [n, C] of a kind (KINDS), and labels [n] that are uniform over the classes."""
    random = np.random.default_rng(seed)
    if kind == "smooth":
        p = random.dirichlet(np.full(classes, 0.5), size=n)
    elif kind == "saturated":
        z = random.normal(scale=40, size=(n, classes))
        z = np.exp(z - z.max(axis=1, keepdims=True))
        p = z / z.sum(axis=1, keepdims=True)
    elif kind == "dyadic":  # sums in any order are exact, so ties are ties in any implementation
        p = random.multinomial(8, np.full(classes, 1 / classes), size=n) / 8
    elif kind == "one_hot":
        p = np.eye(classes)[random.integers(classes, size=n)]
    else:
        p = np.full((n, classes), 1 / classes)
    return p, random.integers(classes, size=n)
