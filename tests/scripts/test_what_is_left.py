"""The figure of what acting on a forecast loses and what recalibration could gain."""

import numpy as np

from utility_calibration.calibrators import Uncalibrated
from utility_calibration.scripts.maintain import what_is_left


def test_only_a_wrong_forecast_is_beyond_chance():
    random = np.random.default_rng(0)
    truth = random.dirichlet(np.ones(3), size=600)
    labels = (truth.cumsum(axis=1) < random.random((600, 1))).sum(axis=1)
    wrong = truth**4 / (truth**4).sum(axis=1, keepdims=True)
    for p, is_beyond in ((truth, False), (wrong, True)):
        loss, left, error = what_is_left.numbers_of(p, labels)
        assert (loss.value > loss.chance[1]) is is_beyond
        assert (left.value > left.half_width) is is_beyond
        assert (error.value > error.chance[1]) is is_beyond


def test_the_command_reads_logits_and_probabilities(tmp_path, monkeypatch):
    monkeypatch.setattr(what_is_left, "METHODS", {"uncalibrated": ("as it is", Uncalibrated)})
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=120)
    np.savez(tmp_path / "a.npz", logits=np.log(p), labels=np.arange(120) % 3)
    np.savez(tmp_path / "b.npz", probabilities=p, labels=np.arange(120) % 3)
    files = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    assert what_is_left.main([*files, "--output", str(tmp_path / "out")]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["what_is_left.png"]
