"""status: what is done, missing, stale and why, failed and why."""

from collections import Counter

import pytest
from omegaconf import OmegaConf

from tests.refusals import refuses
from utility_calibration.pipeline.evaluate import run_evaluate
from utility_calibration.pipeline.fit import run_fit
from utility_calibration.pipeline.harness import code_digest as code
from utility_calibration.pipeline.harness.code_digest import code_digest
from utility_calibration.pipeline.harness.parameters import CONF
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.plan import Plan
from utility_calibration.pipeline.status import main
from utility_calibration.pipeline.tasks import all_splits_task


def found(request):
    """How many units are in which state, and the last word of the reason."""
    states = [state for _, state in Plan(request.units()).states()]
    return Counter((state, why.rpartition(" ")[2]) for state, why in states)


def test_done_and_missing_units_are_told_apart(request_made, tmp_path):
    assert found(request_made()) == {("done", ""): 6}
    (tmp_path / "data/fits/tiny/vector/0.npz").unlink()
    (tmp_path / "data/scores/tiny/vector/1.npz").unlink()
    assert found(request_made("calibrator=vector")) == {
        ("missing", "fitted"): 1,
        ("missing", "evaluated"): 1,
        ("done", ""): 1,
    }


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("seed=1", "splits"),
        ("calibrator.l2=0.5", "calibrator"),
        ("evaluation.bins=5", "evaluation"),
    ],
)
def test_stale_units_say_why(request_made, override, why):
    assert found(request_made("calibrator=vector", override)) == {("stale", why): 3}


def test_how_the_files_of_evaluations_are_called_makes_no_score_stale(request_made):
    request = request_made("calibrator=vector", "+evaluation.suffixes.mine=-of-mine")
    assert found(request) == {("done", ""): 3}


def test_scores_that_are_gone_are_in_no_key(request_made, tmp_path):
    plan = Plan(request_made("calibrator=vector").units())
    gone = tmp_path / "data/scores/tiny/vector/1.npz"
    gone.unlink()
    with refuses(file=gone):
        all_splits_task(plan.units, plan.found("tiny"))


def test_a_failed_unit_says_why_until_it_succeeds(request_made, monkeypatch):
    request = request_made("calibrator=vector", "split=0", "calibrator.l2=0.5")
    with monkeypatch.context() as patch:
        patch.setattr(
            "utility_calibration.pipeline.scoring.fitted.instantiate", lambda *_, **__: 1 / 0
        )
        with pytest.raises(UnitsFailed):
            run_fit(Plan(request.units()))
    assert found(request) == {("failed", "zero"): 1}
    run_fit(Plan(request.units()))
    run_evaluate(Plan(request.units()))
    assert found(request) == {("done", ""): 1}


COMPUTING = [
    ("calibrators/vector.py", "fit"),
    ("pipeline/scoring/fitted.py", "fit"),
    ("pipeline/scoring/held_out.py", "evaluate"),
    ("pipeline/harness/parallel.py", None),
]


@pytest.mark.parametrize(("file", "stage"), COMPUTING)
def test_an_edit_of_the_code_that_computes_a_unit_makes_it_stale(file, stage, request_made, edited):
    edited(file)
    stale = {("stale", "code"): 3}
    request = request_made("calibrator=vector")
    assert found(request) == ({("done", ""): 3} if stage is None else stale)
    plan = Plan(request.units())
    for unit in plan.units:
        assert plan.fit(unit).is_up_to_date() is (stage != "fit")


@pytest.fixture
def edited(monkeypatch):
    """`edited(file)`: keys are those of a repository in which one statement more is in `file`."""

    def edit(file):
        module = f"utility_calibration.{file.removesuffix('.py').replace('/', '.')}"
        code_digest.cache_clear()

        def read_anew(name, path):
            content, names = read(name, path)
            return content + ("EDITED = 1" if name == module else ""), names

        monkeypatch.setattr(code, "_read", read_anew)

    read = code._read
    yield edit
    code_digest.cache_clear()


def test_without_a_suite_the_parameters_of_dvc_apply(tmp_path, monkeypatch, capsys):
    path = tmp_path / "params.yaml"
    params = OmegaConf.load(CONF.parent / "params.yaml")
    params.splits.count, params.suite.calibrators = 3, ["vector"]
    OmegaConf.save(params, path)
    monkeypatch.setattr("utility_calibration.pipeline.status.PARAMETERS", path)
    monkeypatch.chdir(tmp_path)
    for arguments, count in (([], 3), (["suite=digits", "calibrator=vector"], 10)):
        monkeypatch.setattr("sys.argv", ["status", *arguments])
        main()
        assert f"0 of {count} units" in capsys.readouterr().out
