"""The penalised loss of Dirichlet calibration in plain NumPy, and samples to minimise it on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Floats = NDArray[np.float64]
Sample = tuple[Floats, NDArray[np.float32], NDArray[np.int64]]
"""Row-centred log-probabilities x [n, C], logits [n, C], labels [n]."""

PENALTIES = ((0.1, 0.1), (10.0, 1.0), (0.01, 100.0))
"""λ (off-diagonals) and μ (intercepts)."""
POINTS = 1000
FILE = "cifar10_resnet56.npz"


def samples(folder: Path | None) -> dict[str, Sample]:
    """A synthetic sample of four classes and, where a `folder` holds them, CIFAR-10's logits."""
    from scripts.speed.inputs import Size, arrays

    made = arrays(Size(POINTS, 4))
    found = {"synthetic": (made.logits, made.labels)}
    if folder is not None:
        with np.load(folder / FILE, allow_pickle=False) as real:
            found["cifar10"] = real["logits"][:POINTS], real["labels"][:POINTS]
    return {name: (centred(z), z, y) for name, (z, y) in found.items()}


def centred(logits: NDArray[np.float32]) -> Floats:
    """Log-probabilities minus their row mean, which is common to all classes."""
    x: Floats = log_softmax(logits.astype(np.float64), axis=1)
    return x - x.mean(axis=1, keepdims=True)


def objective(
    x: Floats, labels: NDArray[np.int64], matrix: Floats, intercept: Floats, odir: float, l2: float
) -> float:
    """Mean NLL + λ / (C (C - 1)) Σ_{j≠k} W_jk² + μ / C Σ_j b_j² (Kull et al. 2019)."""
    classes = len(intercept)
    log_p = log_softmax(x @ matrix.T + intercept, axis=1)
    off_diagonal = matrix - np.diag(np.diag(matrix))
    penalty = odir / (classes * (classes - 1)) * np.square(off_diagonal).sum()
    penalty += l2 / classes * np.square(intercept).sum()
    return float(penalty - log_p[np.arange(len(labels)), labels].mean())
