"""The dynamics stage: what it writes, skips and makes again."""

import numpy as np
import pandas as pd
import pytest
from hydra.errors import ConfigCompositionException
from scipy.special import softmax

from tests.pipeline.conftest import files_below, times
from tests.refusals import fails
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.dynamics import run_dynamics
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.harness.units import composed, resolved
from utility_calibration.pipeline.logits import run_logits
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.scoring.dynamics_study import run_study

SMALL = ("dynamics.iterations=6", "dynamics.utilities=20", "dynamics.snapshots=[0,2]",
         "dynamics.splits=2", "dynamics.floor_draws=3", "dynamics.misaligned.subsets=2",
         )  # fmt: skip
FAMILIES = ("aligned", "misaligned")


@pytest.fixture
def request_study(request_tiny):
    run_logits(Plan(request_tiny().units()))
    return lambda *overrides: request_tiny(*SMALL, *overrides)


def test_what_it_writes_and_that_a_second_run_makes_nothing(request_study, tmp_path):
    run_dynamics(request_study())
    for family in FAMILIES:
        folder = tmp_path / "results/dynamics/tiny" / family
        history, snapshots = (pd.read_csv(folder / f"{k}.csv") for k in ("history", "snapshots"))
        assert history["split"].tolist() == [0] * 7 + [1] * 7
        assert history["iteration"].tolist() == [*range(7), *range(7)]
        assert (history["held_out"] != history["worst"]).all()
        history = history[history["split"] == 0]
        assert (history["brier"].diff().dropna() <= 0).all()
        assert history["worst"].iloc[-1] < history["worst"].iloc[0]
        assert snapshots.groupby("iteration").size().to_dict() == {0: 20, 2: 20, 6: 20}
        for number in (0, 2, 6):
            errors = snapshots.loc[snapshots["iteration"] == number, "error"]
            assert errors.max() == history.loc[number, "worst"]
            assert errors.mean() == pytest.approx(history.loc[number, "mean"], rel=1e-6)
        record = read_json(folder / "dynamics.json")
        assert (record["n"], record["n_held_out"]) == (140, 60)
        assert record["different_users"] == {"aligned": 20, "misaligned": 2}[family]
    before = files_below(tmp_path / "results"), times(tmp_path / "data/dynamics")
    run_dynamics(request_study())
    assert (files_below(tmp_path / "results"), times(tmp_path / "data/dynamics")) == before


def test_the_held_out_points_get_the_patches_of_the_calibration_points():
    """A held-out set that is the calibration set has the same errors before every patch."""
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(200, 5)), random.integers(5, size=200)
    settings = resolved(composed(["benchmark=digits", "calibrator=uncalibrated", *SMALL]))
    states = [PatchedForecast(softmax(2 * logits, axis=1), labels) for _ in range(2)]
    history, _ = run_study(*states, "aligned", settings.dynamics)
    assert history["held_out"].to_list() == pytest.approx(history["worst"].to_list(), rel=1e-9)
    assert history["worst"].nunique() == len(history)


def test_options_and_damage_of_one_family_do_not_redo_the_other(request_study, tmp_path):
    run_dynamics(request_study())
    unit = {name: tmp_path / f"data/dynamics/tiny/{name}/0.npz" for name in FAMILIES}
    before = {name: path.read_bytes() for name, path in unit.items()}
    written = unit["misaligned"].stat().st_mtime_ns
    unit["aligned"].write_bytes(before["aligned"][:-30])
    run_dynamics(request_study())
    assert unit["aligned"].read_bytes() == before["aligned"]
    run_dynamics(request_study("dynamics.aligned.high=0.05"))
    assert unit["aligned"].read_bytes() != before["aligned"]
    assert unit["misaligned"].stat().st_mtime_ns == written


@pytest.mark.parametrize(
    "override",
    [
        "dynamics.families=[]", "dynamics.families=[alinged]",
        "dynamics.families=[aligned,aligned]", "+dynamics.aligned.low=0.1",
        "dynamics.iterations=-1", "dynamics.utilities=0", "dynamics.floor_draws=-1",
        "dynamics.snapshots=[-1]", "dynamics.snapshots=[a]", "dynamics.step_size=0",
        "dynamics.step_size=nan", "dynamics.aligned.high=1.5", "dynamics.misaligned.gain=-0.1",
        "dynamics.misaligned.subsets=4", "dynamics.misaligned.subsets=0",
        "dynamics.misaligned.partition_seed=-2", "dynamics.line_search=armijo", "dynamics.seed=-1",
        "dynamics.aligned=null", "dynamics.line_search={trials: 0}",
    ],
)  # fmt: skip
def test_impossible_settings_are_refused_before_any_work(request_study, tmp_path, override):
    name = override.partition("=")[0].rpartition(".")[2]
    with fails((UsageError, InputError, ConfigCompositionException), name):
        run_dynamics(request_study(override))
    assert not (tmp_path / "data/dynamics").exists()


def test_snapshots_may_be_of_the_last_iteration_alone(request_study, tmp_path):
    run_dynamics(request_study("dynamics.snapshots=[]", "dynamics.families=[aligned]"))
    snapshots = pd.read_csv(tmp_path / "results/dynamics/tiny/aligned/snapshots.csv")
    assert set(snapshots["iteration"]) == {6}
