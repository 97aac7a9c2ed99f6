"""The dynamics stage: what it writes, skips and makes again."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.pipeline.conftest import files_below, times
from utility_calibration.pipeline.dynamics import run_dynamics
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.plan import Plan

SMALL = ("dynamics.iterations=6", "dynamics.utilities=20", "dynamics.snapshots=[0,2]",
         "dynamics.floor_draws=3", "dynamics.misaligned.subsets=2")  # fmt: skip
FAMILIES = ("aligned", "misaligned")


@pytest.fixture
def request_study(request_tiny):
    run_logits(Plan(request_tiny().units()))
    return lambda *overrides: request_tiny(*SMALL, *overrides)


def test_what_it_writes_and_that_a_second_run_makes_nothing(request_study, tmp_path, capsys):
    run_dynamics(request_study())
    for family in FAMILIES:
        folder = tmp_path / "results/dynamics/tiny" / family
        history, snapshots = (pd.read_csv(folder / f"{k}.csv") for k in ("history", "snapshots"))
        assert history["iteration"].tolist() == list(range(7))
        assert (history["brier"].diff().dropna() <= 0).all()
        assert history["worst"].iloc[-1] < history["worst"].iloc[0]
        assert snapshots.groupby("iteration").size().to_dict() == {0: 20, 2: 20, 6: 20}
        for number in (0, 2, 6):
            errors = snapshots.loc[snapshots["iteration"] == number, "error"]
            assert errors.max() == history.loc[number, "worst"]
            assert errors.mean() == pytest.approx(history.loc[number, "mean"], rel=1e-6)
        assert read_json(folder / "dynamics.json")["n"] == 140
    before = files_below(tmp_path / "results"), times(tmp_path / "data/dynamics")
    capsys.readouterr()
    run_dynamics(request_study())
    assert "dynamics: nothing to do, 2 up to date" in capsys.readouterr().out
    assert (files_below(tmp_path / "results"), times(tmp_path / "data/dynamics")) == before


def test_options_and_damage_of_one_family_do_not_redo_the_other(request_study, tmp_path):
    run_dynamics(request_study())
    unit = {name: tmp_path / f"data/dynamics/tiny/{name}.npz" for name in FAMILIES}
    before = {name: path.read_bytes() for name, path in unit.items()}
    written = unit["misaligned"].stat().st_mtime_ns
    unit["aligned"].write_bytes(before["aligned"][:-30])
    run_dynamics(request_study())
    assert unit["aligned"].read_bytes() == before["aligned"]
    run_dynamics(request_study("dynamics.aligned.high=0.05"))
    assert unit["aligned"].read_bytes() != before["aligned"]
    assert unit["misaligned"].stat().st_mtime_ns == written
