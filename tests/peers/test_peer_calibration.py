"""`pipeline.sources.peers` hands to the packages what they ask for, checked by direct calls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.sources.peers import PEERS, PeerCalibration
from tests.peers.conftest import package
from tests.peers.inputs import Arrays, Size, arrays

POINTS, NEW = 800, 200


@pytest.fixture(scope="module")
def inputs() -> Arrays:
    return arrays(Size(POINTS + NEW, 5))


def fitted(method: str, inputs: Arrays) -> PeerCalibration:
    for name in PEERS[method].needs:
        package(name)
    return PeerCalibration(method).fit(inputs.logits[:POINTS], inputs.labels[:POINTS])


@pytest.mark.parametrize("method", PEERS)
def test_the_adapter_answers_as_the_package_does(method, inputs) -> None:
    answer = fitted(method, inputs).predict_proba(inputs.logits[POINTS:])
    library = package("probmetrics.calibrators")
    direct = getattr(library, PEERS[method].name)()
    if PEERS[method].one_vs_rest:
        direct = library.MulticlassOneVsRestCalibrator(direct)
    direct.fit(inputs.probabilities[:POINTS], inputs.labels[:POINTS])
    expected = direct.predict_proba(inputs.probabilities[POINTS:])
    np.testing.assert_allclose(answer, expected, atol=1e-6)
    assert np.abs(answer - inputs.probabilities[POINTS:]).max() > 1e-3  # it did something


@pytest.mark.parametrize("method", PEERS)
def test_a_stored_calibrator_of_a_package_predicts_the_same_bits(method, inputs, tmp_path) -> None:
    one = fitted(method, inputs)
    loaded = PeerCalibration.load(one.save(tmp_path / "one.npz"))
    new = torch.from_numpy(inputs.logits[POINTS:])
    assert torch.equal(loaded.predict_proba(new), one.predict_proba(new))


@pytest.mark.parametrize("method", [name for name in PEERS if name != "beta"])
def test_classes_without_samples_still_get_probabilities(method, inputs) -> None:
    fitted(method, inputs)  # skipped without the package
    calibrator = PeerCalibration(method).fit(inputs.logits[:POINTS], inputs.labels[:POINTS] % 4)
    p = calibrator.predict_proba(inputs.logits[POINTS:])
    assert p.shape == (NEW, 5) and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
