"""Data for the calibrators' tests: real logits, and made-up ones with known answers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

Data = tuple[NDArray[np.float32], NDArray[np.int64]]


@pytest.fixture(scope="session")
def real_split(shared_dir: Path) -> Callable[[str], tuple[Data, Data]]:
    """Return ((calibration logits, labels), (test logits, labels)), 7,000 and 3,000 points."""

    def load(name: str) -> tuple[Data, Data]:
        with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
            logits, labels = archive["logits"], archive["labels"]
        order = np.random.default_rng(0).permutation(len(labels))
        one, two = order[:7000], order[7000:]
        return (logits[one], labels[one]), (logits[two], labels[two])

    return load


@pytest.fixture
def made_up() -> Callable[..., Data]:
    """Return logits of a noisy classifier and labels drawn from softmax(logits / temperature)."""

    def make(n: int = 400, classes: int = 5, temperature: float = 2.0, seed: int = 0) -> Data:
        generator = np.random.default_rng(seed)
        logits = 3 * generator.normal(size=(n, classes)).astype(np.float32)
        noise = generator.gumbel(size=(n, classes))
        return logits, (logits / temperature + noise).argmax(axis=1)

    return make
