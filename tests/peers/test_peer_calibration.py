"""`calibrators/peers.py` hands to the packages what they ask for, checked by direct calls."""

import numpy as np
import pytest
import torch

from tests.peers.conftest import package
from utility_calibration.calibrators.peers import PEERS, SEED, PeerCalibration
from utility_calibration.scripts.speed.cases import Data, Size, data

POINTS, NEW = 800, 200


@pytest.fixture(scope="module")
def inputs() -> Data:
    return data(Size(POINTS + NEW, 5), "cpu")


def fitted(method: str, inputs: Data, labels: torch.Tensor | None = None) -> PeerCalibration:
    for name in PEERS[method].needs:
        package(name)
    labels = inputs.labels if labels is None else labels
    return PeerCalibration(method).fit(inputs.logits[:POINTS], labels[:POINTS])


@pytest.mark.parametrize("method", PEERS)
def test_the_adapter_answers_as_the_package_does(method, inputs, tmp_path) -> None:
    calibrator, new = fitted(method, inputs), inputs.logits[POINTS:]
    answer = calibrator.predict_proba(new)
    library = package("probmetrics.calibrators")
    direct = getattr(package(PEERS[method].module), PEERS[method].name)()
    if PEERS[method].one_vs_rest:
        direct = library.MulticlassOneVsRestCalibrator(direct)
    p, labels = inputs.arrays
    torch.manual_seed(SEED)
    direct.fit(p[:POINTS], labels[:POINTS])
    np.testing.assert_allclose(answer, direct.predict_proba(p[POINTS:]), atol=1e-6)
    assert np.abs(answer.numpy() - p[POINTS:]).max() > 1e-3  # it did something
    loaded = PeerCalibration.load(calibrator.save(tmp_path / "calibrator.npz"))
    assert torch.equal(loaded.predict_proba(new), answer)


@pytest.mark.parametrize("method", [name for name in PEERS if name != "beta"])
def test_classes_without_samples_still_get_probabilities(method, inputs) -> None:
    p = fitted(method, inputs, inputs.labels % 4).predict_proba(inputs.logits[POINTS:]).numpy()
    assert p.shape == (NEW, 5) and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
