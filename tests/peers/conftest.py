"""Other packages' word for our numbers (`make test-peers`), on synthetic and on real logits.

The calls themselves are those of `tests/peers/packages.py`. A test is skipped where its package is
absent, and on real logits where there are none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from metrics.archive import read_arrays
from pipeline.sources.heavy_imports import require
from tests.peers.inputs import Arrays, Size, arrays
from tests.peers.packages import Answer, Contender

POINTS = 3000
FILES = ("cifar10_resnet56", "cifar100_resnet56")


@pytest.fixture(scope="session", params=["synthetic", *FILES])
def inputs(request: pytest.FixtureRequest) -> Arrays:
    """Logits float32, labels and the float64 softmax."""
    if request.param == "synthetic":
        return arrays(Size(POINTS, 10))
    folder = request.getfixturevalue("shared_dir") / "logits"
    found = read_arrays(folder / f"{request.param}.npz", ("logits", "labels"))
    logits, labels = found["logits"][:POINTS].astype(np.float32), found["labels"][:POINTS]
    p = softmax(logits.astype(np.float64), axis=1)
    return Arrays(Size(len(labels), logits.shape[1]), logits, labels.astype(np.int64), p)


def answer_of(contender: Contender, inputs: Arrays) -> Answer:
    """What another package answers; the test is skipped without it."""
    if not contender.is_installed:
        pytest.skip(f"{contender.package} is not installed (requirements-peers.txt)")
    prepared = contender.prepare(inputs, "cpu")
    return contender.answer(prepared, contender.run(prepared))


def package(name: str) -> Any:
    """A module of another package; the test is skipped without it."""
    pytest.importorskip(name.partition(".")[0], reason=f"{name}: see requirements-peers.txt")
    return require(name)
