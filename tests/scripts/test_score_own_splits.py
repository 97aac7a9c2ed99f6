"""scripts/score.py on calibration and test points that a person chose."""

import numpy as np
import pytest

from calibrators import TemperatureScaling
from calibrators.base import Calibrator
from metrics import scorecard
from tests.pipeline.conftest import write_example
from tests.scripts.conftest import quick

METHODS = ("--methods", "temperature")


@pytest.fixture
def arrays(tmp_path):
    """300 points, of which the first 200 calibrate."""
    return dict(np.load(write_example(tmp_path / "all.npz", n=300)))


def test_a_second_file_tests_and_the_first_one_is_what_is_saved(tmp_path, arrays, capsys):
    for name, rows in (("cal", slice(None, 200)), ("test", slice(200, None))):
        np.savez(tmp_path / f"{name}.npz", **{key: a[rows] for key, a in arrays.items()})
    keep = ("--test", str(tmp_path / "test.npz"), "--save", str(tmp_path / "kept.npz"))
    result = quick(tmp_path / "cal.npz", tmp_path / "out", *METHODS, *keep)["temperature"]
    z, y = arrays["logits"], arrays["labels"]
    by_hand = TemperatureScaling().fit(z[:200], y[:200])
    card = scorecard(by_hand.predict_proba(z[200:]), y[200:], utilities=0)
    for metric in ("nll", "u_cwe", "accuracy"):
        assert result[metric]["mean"] == pytest.approx(card.metrics[metric], rel=1e-6)
    assert result["u_cwe"]["splits"] == 1
    assert result["u_cwe"]["interval"] == "bootstrap" and result["u_cwe"]["half_width"] > 0
    assert Calibrator.load(tmp_path / "kept.npz").temperature_ == by_hand.temperature_
    told = " ".join(capsys.readouterr().out.split())
    assert "Calibration and test points are the file's own: 200 and 100" in told
    assert "temperature fitted on the calibration points" in told


def test_split_arrays_are_splits_and_all_points_can_be_saved(tmp_path, arrays):
    words = np.array(["cal"] * 200 + ["test"] * 100)
    splits = {"split_1": words, "split_2": words[::-1]}
    np.savez(tmp_path / "mine.npz", **arrays, **splits)
    keep = ("--save", str(tmp_path / "kept.npz"), "--save-on", "all")
    result = quick(tmp_path / "mine.npz", tmp_path / "out", *METHODS, *keep)["temperature"]
    z, y, values = arrays["logits"], arrays["labels"], []
    for tested in (words == "test", words[::-1] == "test"):
        p = TemperatureScaling().fit(z[~tested], y[~tested]).predict_proba(z[tested])
        values.append(scorecard(p, y[tested], utilities=0).metrics["nll"])
    assert result["nll"]["mean"] == pytest.approx(np.mean(values), rel=1e-6)
    assert result["nll"]["splits"] == 2
    everything = TemperatureScaling().fit(z, y)
    assert Calibrator.load(tmp_path / "kept.npz").temperature_ == everything.temperature_
