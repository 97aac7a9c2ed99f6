"""What other packages say of our numbers (`make test-peers`), on synthetic and on real logits.

A test is skipped where its package is not installed, and on real logits where there are none.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics import Linear
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.scripts.speed.cases import Data, Size, data

POINTS = 3000
FILES = ("cifar10_resnet56", "cifar100_resnet56")


@pytest.fixture(scope="session", params=["synthetic", *FILES])
def inputs(request: pytest.FixtureRequest) -> Data:
    """Logits float32, labels and the float64 softmax."""
    if request.param == "synthetic":
        return data(Size(POINTS, 10))
    return real(request.getfixturevalue("shared_dir") / "logits", request.param)


def real(folder: Any, name: str, points: int = POINTS) -> Data:
    """The first points of a file of real logits."""
    file = read_arrays(folder / f"{name}.npz", ("logits", "labels"))
    logits = file["logits"][:points].astype(np.float32)
    labels = file["labels"][:points].astype(np.int64)
    size = Size(len(labels), logits.shape[1])
    return Data(size, logits, labels, softmax(logits), Linear.sample(1, size.classes, 0))


def package(name: str) -> Any:
    """A module of another package; the test is skipped without it."""
    top = name.partition(".")[0]
    if find_spec(top) is None:
        pytest.skip(f"{top} is not installed (make test-peers installs it)")
    require("torchvision")  # torchmetrics imports it, and its own way of importing it may fail
    return require(name)
