"""Other packages' calibrators answer through `Wrapped` as they do when called directly."""

import numpy as np
import pytest
import torch
import yaml

from tests.peers.conftest import package
from utility_calibration.calibrators import Wrapped
from utility_calibration.calibrators.wrapped import SEED, made
from utility_calibration.pipeline.harness.parameters import CONF
from utility_calibration.pipeline.reporting.names import PEERS
from utility_calibration.scripts.speed.cases import Data, Size, data

POINTS, NEW = 800, 200
NEEDS = {"beta": "betacal", "venn_abers": "venn_abers", "centred_isotonic": "cir_model"}


@pytest.fixture(scope="module")
def inputs() -> Data:
    return data(Size(POINTS + NEW, 5))


def recipe_of(method: str) -> dict[str, object]:
    """The estimator of conf/calibrator/<method>.yaml."""
    for name in ("probmetrics", NEEDS.get(method, "probmetrics")):
        package(name)
    text = (CONF / "calibrator" / f"{method}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["estimator"]


@pytest.mark.parametrize("method", PEERS)
def test_the_wrapper_answers_as_the_package_does(method, inputs) -> None:
    recipe, (p, labels) = recipe_of(method), inputs.arrays
    logits = np.asarray(inputs.logits)
    fitted = Wrapped(recipe).fit(logits[:POINTS], labels[:POINTS])
    answer = fitted.predict_proba(logits[POINTS:])
    direct = made(recipe)
    torch.manual_seed(SEED)
    direct.fit(p[:POINTS], labels[:POINTS])
    np.testing.assert_allclose(answer, direct.predict_proba(p[POINTS:]), atol=1e-6)
    assert np.abs(answer - p[POINTS:]).max() > 1e-3  # it did something
    again = Wrapped(recipe).fit(logits[:POINTS], labels[:POINTS])
    np.testing.assert_array_equal(again.predict_proba(logits[POINTS:]), answer)
