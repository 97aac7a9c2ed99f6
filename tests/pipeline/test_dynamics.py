"""The dynamics stage: what it writes, skips, resumes and draws."""

import re

import numpy as np
import pandas as pd
import pytest

from pipeline import dynamics_study
from pipeline.dynamics import run_dynamics
from pipeline.harness.artifacts import read_json, sha256_of
from pipeline.harness.command import UnitsFailed
from pipeline.reporting import dynamics_figures
from pipeline.reporting.report_page import STUDY_CAPTIONS

SMALL = ("dynamics.iterations=6", "dynamics.utilities=20", "dynamics.snapshots=[0,2]",
         "dynamics.floor_draws=3", "dynamics.misaligned.subsets=2")  # fmt: skip
FAMILIES = ("aligned", "misaligned")
FIGURES = [
    f"dynamics_{kind}_tiny.{suffix}" for kind in STUDY_CAPTIONS for suffix in ("pdf", "png", "svg")
]


@pytest.fixture
def request_study(request_tiny):
    return lambda *overrides: request_tiny(*SMALL, *overrides)


@pytest.fixture
def no_figures(monkeypatch):
    """They take seconds, and the tests of what is drawn suffice."""
    monkeypatch.setattr(dynamics_figures, "dynamics_drawings", lambda *arguments: [])


@pytest.fixture
def study(tmp_path):
    """`study(family)` -> (history, snapshots, record)"""

    def read(family):
        folder = tmp_path / "results/dynamics" / f"tiny-{family}"
        tables = [pd.read_csv(folder / f"{name}.csv") for name in ("history", "snapshots")]
        return *tables, read_json(folder / "dynamics.json")

    return read


def test_what_it_writes(request_study, study, tmp_path):
    run_dynamics(request_study())
    for family in FAMILIES:
        history, snapshots, record = study(family)
        assert history["iteration"].tolist() == list(range(7))
        assert (history["brier"].diff().dropna() <= 0).all()
        assert history["worst"].iloc[-1] < history["worst"].iloc[0]
        assert (history["q05"] <= history["median"]).all()
        assert (history["q95"] <= history["worst"]).all()
        assert history["points"].iloc[-1] == 0  # the last iteration only audits
        assert snapshots.groupby("iteration").size().to_dict() == {0: 20, 2: 20, 6: 20}
        for number in (0, 2, 6):
            errors = snapshots.loc[snapshots["iteration"] == number, "error"]
            row = history.iloc[number]
            assert errors.max() == row["worst"]
            first = errors.ge(errors.max() - 1e-9).idxmax()  # of users alike
            assert first - errors.index[0] == row["user"]
            assert errors.mean() == pytest.approx(row["mean"], rel=1e-8)
        assert record["n"] == 140
        assert record["worst_noise_floor"]["q05"] <= record["worst_noise_floor"]["q95"]
        assert record["config"]["utilities"] == 20
    assert sorted(path.name for path in (tmp_path / "results/figures").iterdir()) == FIGURES
    assert not list(tmp_path.rglob("state.npz"))


def test_a_second_run_computes_nothing_and_draws_the_same(request_study, tmp_path, capsys):
    run_dynamics(request_study())
    results = tmp_path / "results"
    before = {path: sha256_of(path) for path in results.rglob("*.*")}
    capsys.readouterr()
    run_dynamics(request_study())
    assert "dynamics: nothing to do, 2 up to date" in capsys.readouterr().out
    assert {path: sha256_of(path) for path in results.rglob("*.*")} == before


@pytest.mark.usefixtures("no_figures")
def test_options_of_one_family_do_not_redo_the_other(request_study, capsys):
    run_dynamics(request_study())
    capsys.readouterr()
    run_dynamics(request_study("dynamics.aligned.high=0.05"))
    assert re.search(r"tiny\s*│\s*1 │\s*1 │\s*0 ", capsys.readouterr().out)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("damage", ["history.csv", "snapshots.csv", "dynamics.json"])
def test_damaged_results_are_made_again(request_study, study, tmp_path, damage):
    request = request_study("dynamics.families=[aligned]")
    run_dynamics(request)
    history, snapshots, _ = study("aligned")
    path = tmp_path / "results/dynamics/tiny-aligned" / damage
    path.write_bytes(path.read_bytes()[:-30])
    run_dynamics(request)
    again, same_snapshots, _ = study("aligned")
    pd.testing.assert_frame_equal(again, history)
    pd.testing.assert_frame_equal(same_snapshots, snapshots)


def killed_after(iteration, monkeypatch):
    """Save after every iteration; the audit of `iteration` is where the run dies."""
    monkeypatch.setattr(dynamics_study, "SECONDS_BETWEEN_SAVES", -1.0)
    audit, audits = dynamics_study.UserAuditor.__call__, []

    def dying(self, state, number):
        audits.append(number)
        if len(audits) > iteration:
            raise OSError("killed")
        return audit(self, state, number)

    monkeypatch.setattr(dynamics_study.UserAuditor, "__call__", dying)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_killed_run_goes_on_and_ends_alike(request_study, study, tmp_path, monkeypatch, family):
    request = request_study(f"dynamics.families=[{family}]")
    run_dynamics(request)
    history, snapshots, _ = study(family)
    state = tmp_path / f"results/dynamics/tiny-{family}/state.npz"
    forced = request_study(f"dynamics.families=[{family}]", "force=true")
    with monkeypatch.context() as patched:
        killed_after(4, patched)
        with pytest.raises(UnitsFailed, match="killed"):
            run_dynamics(forced)
    assert len(np.load(state)["history"]) == 4
    with monkeypatch.context() as patched:
        killed_after(3, patched)  # three audits are left, and it does not die
        run_dynamics(forced)
    again, same_snapshots, _ = study(family)
    pd.testing.assert_frame_equal(again, history)
    pd.testing.assert_frame_equal(same_snapshots, snapshots)
    assert not state.exists()


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("damage", ["truncated", "of another study"])
def test_a_useless_state_is_started_over(request_study, study, tmp_path, monkeypatch, damage):
    request = request_study("dynamics.families=[aligned]")
    with monkeypatch.context() as patched:
        killed_after(2, patched)
        with pytest.raises(UnitsFailed):
            run_dynamics(request)
    state = tmp_path / "results/dynamics/tiny-aligned/state.npz"
    if damage == "truncated":
        state.write_bytes(state.read_bytes()[:200])
    else:
        request = request_study("dynamics.families=[aligned]", "dynamics.armijo=0.25")
    run_dynamics(request)
    assert study("aligned")[0]["iteration"].tolist() == list(range(7))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("dynamics.families=[alined]", "known: aligned, misaligned"),
        ("dynamics.families=[]", "known: aligned, misaligned"),
        ("dynamics.iterations=-1", "dynamics.iterations=-1: expected at least 0"),
        ("dynamics.utilities=0", "dynamics.utilities=0: expected at least 1"),
        ("dynamics.armijo=0", "dynamics.armijo=0: expected a positive number"),
    ],
)
def test_mistakes_are_one_line(request_study, override, message):
    with pytest.raises(ValueError, match=message):
        run_dynamics(request_study(override))


@pytest.mark.usefixtures("no_figures")
def test_too_many_subsets_fail_that_family_alone(request_study, study):
    with pytest.raises(UnitsFailed):
        run_dynamics(request_study("dynamics.misaligned.subsets=4"))
    assert len(study("aligned")[0]) == 7


def test_without_patches_or_noise_floor(request_study, study):
    run_dynamics(request_study("dynamics.iterations=0", "dynamics.floor_draws=0"))
    history, snapshots, record = study("misaligned")
    assert len(history) == 1
    assert set(snapshots["iteration"]) == {0}
    assert record["worst_noise_floor"] is None


@pytest.mark.usefixtures("no_figures")
def test_another_split_has_other_points(request_study, study):
    run_dynamics(request_study("split=2"))
    assert study("aligned")[2]["split"] == 2


def test_a_suite_without_benchmarks_for_it_has_an_empty_receipt(tmp_path):
    from tests.pipeline.conftest import request_of

    request = request_of(f"paths.results={tmp_path}")
    run_dynamics(type(request)(**{**vars(request), "benchmarks": ()}))
    assert read_json(tmp_path / "suites/digits/dynamics.json") == {}
