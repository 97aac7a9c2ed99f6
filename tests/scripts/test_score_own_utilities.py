"""The program score with a person's own utilities: columns, verdicts, prices, what is aimed at."""

import numpy as np
import pytest

from tests.pipeline.conftest import write_example
from tests.refusals import refuses
from tests.scripts.conftest import quick
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.patching.utilities import KINDS
from utility_calibration.pipeline.harness.artifacts import read_json


def test_own_utilities_have_a_column_a_floor_a_certificate_and_a_worst_interval(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    arrays = np.load(write_example(tmp_path / "x.npz"))
    named = {"class_names": np.array(["emu", "cat", "dog"])}
    np.savez(tmp_path / "mine.npz", **arrays, **named)
    files = {
        "payoffs": "user,cat,dog,emu\nann,100,-50,0\nbob,0,0,1\n",
        "valuations": "1,2,3\n1,0.5,0\n",
        "losses": "class,stay,go\nemu,0,3\ncat,5,0\ndog,1,1\n",
        "gain": "true,emu,cat,dog\nemu,1,0.5,0\ncat,0.5,1,0\ndog,0,0,1\n",
    }
    (tmp_path / "own_module.py").write_text("def even(p):\n    return p * 0 + 0.5\n")
    arguments = ["--utility", "own_module:even"]
    for kind, text in files.items():
        (tmp_path / f"{kind}.csv").write_text(text)
        arguments += [f"--{kind}", f"{kind}.csv"]
    chosen = ("--methods", "uncalibrated", "temperature", "--splits", "1")
    result = quick(tmp_path / "mine.npz", tmp_path / "out", *chosen, *arguments)
    keys = [f"u_{kind}" for kind in (*files, "utility")]
    for scores in result.values():
        assert list(scores)[-5:] == keys
        assert all(scores[key]["floor_mean"] >= 0 for key in keys)
        assert all(scores[key]["upper"] >= scores[key]["lower"] for key in keys)
    assert result["uncalibrated"]["u_payoffs"]["mean"] > 1  # of ann, in her unit
    report = (tmp_path / "out/report.md").read_text()
    assert "ann, " in report and "own_module:even" in report


def test_losses_are_priced_against_methods_and_constant_actions(tmp_path):
    path = write_example(tmp_path / "two.npz", n=700, classes=2)
    (tmp_path / "l.csv").write_text("class,wait,treat\n0,0,1\n1,4,0\n")
    arguments = ("--methods", "uncalibrated", "temperature", "--splits", "2")
    quick(path, tmp_path / "out", *arguments, "--losses", str(tmp_path / "l.csv"))
    record = read_json(tmp_path / "out/decisions.json")
    methods, best = record["methods"], record["best_constant"]
    assert record["constant"][best] == min(record["constant"].values())
    for name, other in (("uncalibrated", "temperature"), ("temperature", "uncalibrated")):
        one, gap = methods[name], methods[name]["cost"] - methods[other]["cost"]
        assert one["against"][other]["difference"] == pytest.approx(gap)
        assert one["against"][f"always {best}"]["difference"] < 0
        realized = one["expected"] + sum(action["gap"] for action in one["actions"].values())
        assert realized == pytest.approx(one["cost"])
        assert sum(action["share"] for action in one["actions"].values()) == pytest.approx(1)
    curve = record["curve"]
    assert curve["own_threshold"] == pytest.approx(0.2)
    at = curve["thresholds"].index(0.2)  # where acting always costs as the losses say
    gained = record["constant"]["wait"] - methods["temperature"]["cost"]
    assert 4 * curve["methods"]["temperature"][at] == pytest.approx(gained)


def test_patching_calibrates_for_the_own_utility(tmp_path):
    path = write_example(tmp_path / "x.npz", n=300)
    (tmp_path / "p.csv").write_text("0,1,2\n1,-1,0\n0,1,0\n")
    arguments = [
        "--methods", "uncalibrated", "logit_shift", "--splits", "1", "--payoffs",
        str(tmp_path / "p.csv"), "--calibrate-for", "payoffs", "--method", "logit_shift", "--save",
        str(tmp_path / "saved.npz"),
    ]  # fmt: skip
    result = quick(path, tmp_path / "out", *arguments)
    aimed, plain = result["logit_shift"]["u_payoffs"], result["uncalibrated"]["u_payoffs"]
    assert aimed["mean"] < plain["mean"]
    fitted = Calibrator.load(tmp_path / "out/data/fits/x/logit_shift/0.npz")
    assert fitted.standard is False
    assert fitted.utilities == [{"kind": "Linear", "values": [[1, -1, 0], [0, 1, 0]]}]
    assert set(fitted.kinds_) <= {KINDS.index("own")}
    assert set(Calibrator.load(tmp_path / "saved.npz").kinds_) <= {KINDS.index("own")}


def test_a_function_that_fails_is_told_before_anything_is_fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_example(tmp_path / "x.npz", n=60)
    text = "def failing(p):\n    return {}['cat']\n\n\ndef short(p):\n    return p[:, 0]\n"
    (tmp_path / "failing_module.py").write_text(text)
    fits = tmp_path / "out/data/fits"
    with refuses("--utility", number="KeyError: 'cat'", fix="correct it"):
        quick(path, tmp_path / "out", "--utility", "failing_module:failing")
    with refuses("utility function", fix="every outcome"):
        quick(path, tmp_path / "out", "--utility", "failing_module:short")
    assert not fits.exists()
