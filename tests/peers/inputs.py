"""The arrays that all packages get: a synthetic classifier's logits, from a seed.

Accuracy, top-5 accuracy and overconfidence are those of the benchmark `synthetic_imagenet`, so
probabilities range over many orders of magnitude, as a trained network's do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from pipeline.sources.synthetic import SyntheticClassifier

SEED = 0


@dataclass(frozen=True)
class Size:
    """Points n, classes C, sampled utilities M, draws of the labels R (0: does not apply)."""

    n: int
    classes: int
    utilities: int = 0
    draws: int = 0

    def __str__(self) -> str:
        more = "".join(
            f", {name}={value:,}"
            for name, value in (("M", self.utilities), ("R", self.draws))
            if value
        )
        return f"n={self.n:,}, C={self.classes:,}{more}"


@dataclass(frozen=True)
class Arrays:
    """Inputs of one size; probabilities are the float64 softmax of the logits."""

    size: Size
    logits: NDArray[np.float32]  # [n, C]
    labels: NDArray[np.int64]  # [n]
    probabilities: NDArray[np.float64]  # [n, C]


@lru_cache(maxsize=2)
def _drawn(n: int, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    classifier = SyntheticClassifier(
        classes=classes,
        margin_mean=7.5,
        margin_std=4.0,
        background_std=1.5,
        group_size=5,
        rival_gap=14.0,
        temperature=0.75,
        class_bias=0.3,
        noise=0.3,
    )
    sample = classifier.sample(n, SEED)
    return sample.logits, sample.labels


@lru_cache(maxsize=2)
def _softmax(n: int, classes: int) -> NDArray[np.float64]:
    logits, _ = _drawn(n, classes)
    probabilities: NDArray[np.float64] = softmax(logits.astype(np.float64), axis=1)
    return probabilities


def arrays(size: Size) -> Arrays:
    """Return the inputs of `size`; the last two are kept."""
    logits, labels = _drawn(size.n, size.classes)
    return Arrays(size, logits, labels, _softmax(size.n, size.classes))
