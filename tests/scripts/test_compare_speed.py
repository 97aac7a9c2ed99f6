"""compare_speed: all contenders give the same answer."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from utility_calibration import calibrators
from utility_calibration.metrics.kernels.threads import get_threads, set_threads
from utility_calibration.scripts.speed import __main__ as compare_speed
from utility_calibration.scripts.speed import growth
from utility_calibration.scripts.speed.cases import OURS, Case, Size, data
from utility_calibration.scripts.speed.peers import PEERS

TINY = Size(300, 6, utilities=9)
PEER = 5e-3
"""Other packages cut bins an ulp elsewhere, and some end their fits earlier."""


@pytest.mark.parametrize("case", compare_speed.CASES, ids=lambda case: case.title)
def test_every_contender_gives_the_reference_s_answer(case: Case) -> None:
    inputs, answers = data(TINY), {}
    assert OURS in case.contenders
    for name, run in case.contenders.items():
        if name in PEERS and find_spec(name) is None:
            continue
        answers[name] = case.answer(inputs, run(inputs))
        if name in case.others:
            assert np.isfinite(answers[name]).all()
            continue
        difference = case.difference(next(iter(answers.values())), answers[name])
        assert difference <= (PEER if name in PEERS else case.tolerance), name


def test_both_threads_and_what_is_not_compared_are_in_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(compare_speed, "MIN_SECONDS", 1e-9)
    inexact = replace(compare_speed.CASES[0], contenders={OURS: len_of, "other": len_of})
    inexact = replace(inexact, title="made up", answer=random_answer, others=("other",))
    monkeypatch.setattr(compare_speed, "CASES", [inexact])
    threads = get_threads()
    try:
        assert compare_speed.main(["--quick", "--threads", "2", "--output", str(tmp_path)]) == 0
    finally:
        set_threads(threads)
    table = pd.read_csv(tmp_path / "speed_cpu_2.csv")
    assert list(table["contender"]) == [OURS, "other"]
    assert table["difference"].isna().tolist() == [False, True]
    assert "2 threads" in (tmp_path / "speed_cpu_2.md").read_text()


def test_ours_gets_the_threads_that_are_asked_for():
    threads = get_threads()
    try:
        compare_speed.share_threads(OURS, 3)
        assert get_threads() == 3
        compare_speed.share_threads("plain", 2)
        assert get_threads() == 3  # only ours works on threads of its own
    finally:
        set_threads(threads)


def len_of(inputs):
    return len(inputs.labels)


def random_answer(inputs, result):
    return np.random.default_rng().random(3)


def test_exponents_are_slopes_of_the_logarithms():
    assert growth.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2)
    assert growth.sizes(100, 5)[1:] == [Size(200, 5), Size(400, 5), Size(100, 10), Size(100, 20)]
    rows = [
        {
            "work": "square",
            "n": size.n,
            "classes": size.classes,
            "seconds": size.n * size.classes**2,
        }
        for size in growth.sizes(100, 5)
    ]
    (line,) = growth.lines_of(pd.DataFrame(rows))
    assert line[2:] == ["1.00", "2.00"]


def test_the_growth_of_every_metric_and_calibrator_is_measured(tmp_path, monkeypatch):
    public = {name for name in dir(calibrators) if name.endswith(("Scaling", "Calibration"))}
    assert public <= set(growth.works())
    monkeypatch.setattr(growth, "RUNS", 1)
    monkeypatch.setattr(growth, "MIN_SECONDS", 0.0)
    arguments = ["--points", "60", "--classes", "3", "--words", "TopK", "Temperature"]
    assert growth.main([*arguments, "--output", str(tmp_path)]) == 0
    table = pd.read_csv(tmp_path / "growth.csv")
    assert set(table["work"]) == {"TopK", "TemperatureScaling"}
    assert len(table) == 2 * (1 + 2 * growth.DOUBLINGS)
