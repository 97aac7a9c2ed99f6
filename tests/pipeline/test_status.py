"""status: what is done, running, stale and why, missing; and what a plan sums up."""

from pathlib import Path

import pytest
from pipeline.harness.locks import claimed
from pipeline.plan import committed_seconds, plan_lines

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.artifacts import write_json, write_record
from pipeline.harness.cached_logits import logits_path, running_path, sidecar_path
from pipeline.harness.command import UnitsFailed
from pipeline.logits import run_logits
from pipeline.status import details, states
from tests.pipeline.conftest import request_of


@pytest.fixture
def made(request_tiny):
    """Three splits of temperature scaling, fitted; the first also evaluated."""
    run_fit(request_tiny("calibrator=temperature").units())
    run_evaluate(request_tiny("calibrator=temperature", "split=0").units())
    return request_tiny


def names(request):
    return [(state.name, state.why) for state in states(request.units())]


def test_done_missing_and_running_units_are_told_apart(made):
    request = made("calibrator=temperature")
    done, *others = names(request)
    assert done == ("done", "")
    assert others == [("missing", "not evaluated")] * 2
    unit = request.units()[1]
    with claimed(unit.files.scores.running, str(unit), "aim"):
        assert [name for name, _ in names(request)] == ["done", "running", "missing"]
    unit.files.scores.running.write_text("{}")  # of a process that was killed
    assert [name for name, _ in names(request)] == ["done", "missing", "missing"]
    assert "1 of 3 units are done" in list(details(states(request.units())))


def test_stale_units_say_why(made, tmp_path, monkeypatch):
    assert names(made("calibrator=temperature", "seed=1"))[0] == ("stale", "settings")
    assert names(made("calibrator=temperature", "evaluation.bins=5"))[0] == ("stale", "settings")
    monkeypatch.setattr("pipeline.fit.source_fingerprint", lambda *targets: "other code")
    assert names(made("calibrator=temperature"))[0] == ("stale", "code")
    monkeypatch.undo()
    write_record(tmp_path / "data/logits/tiny.json", {"sha256": "other"})
    assert names(made("calibrator=temperature"))[0] == ("stale", "logits")


def test_a_failed_unit_says_why_until_it_succeeds(made, monkeypatch):
    request = made("calibrator=vector", "split=0")
    monkeypatch.setattr("pipeline.fit.made_of", lambda *_, **__: 1 / 0)
    with pytest.raises(UnitsFailed):
        run_fit(request.units())
    assert names(request) == [("failed", "division by zero")]
    assert "failed: 1 units (division by zero)" in list(details(states(request.units())))
    monkeypatch.undo()
    run_fit(request.units())
    assert names(request) == [("missing", "not evaluated")]
    monkeypatch.setattr("pipeline.evaluate.held_out", lambda *_: 1 / 0)
    with pytest.raises(UnitsFailed):
        run_evaluate(request.units())
    assert names(request) == [("failed", "division by zero")]
    monkeypatch.undo()
    run_evaluate(request.units())
    assert names(request) == [("done", "")]


def test_units_whose_logits_could_not_be_made_failed_with_the_reason(request_tiny, tmp_path):
    request = request_tiny("calibrator=temperature")
    settings = request.settings("file")
    source = Path(settings["benchmark"]["source"]["path"])
    away = source.rename(tmp_path / "away.npz")
    for path in (logits_path(settings), sidecar_path(settings)):
        path.unlink(missing_ok=True)
    with pytest.raises(UnitsFailed):
        run_logits([settings])
    (told, *_) = failed = [why for name, why in names(request) if name == "failed"]
    assert len(failed) == 3
    assert told.startswith("logits tiny: ") and str(source) in told
    away.rename(source)
    other = request_tiny("calibrator=temperature", f"benchmark.source.path={tmp_path / 'no.npz'}")
    with pytest.raises(UnitsFailed):  # another source's failure is none of ours
        run_logits([other.settings("file")])
    assert names(request) == [("missing", "not fitted")] * 3
    run_logits([settings])
    assert names(request) == [("missing", "not fitted")] * 3


def test_units_wait_for_whoever_makes_their_logits(request_tiny):
    request = request_tiny("calibrator=temperature", "split=0")
    with claimed(running_path(request.settings("file")), "logits tiny", "aim"):
        ((name, why),) = names(request)
    assert name == "missing" and why.startswith("its logits are made on ")


def plan(request):
    units = [state.unit for state in states(request.units()) if state.name != "done"]
    return list(plan_lines(units, units[0].settings["sweep"]))


def test_the_plan_of_nothing_is_empty():
    assert list(plan_lines([], {})) == [
        "plan: 0 units to run",
        "plan: 0.00 core-hours, 0.00 GPU-hours",
    ]


def test_a_plan_is_the_recorded_time_of_what_is_left(made):
    request = made("suite.calibrators=[temperature,vector]")
    files = request.units()[0].files
    write_json(files.fit.run, {"seconds": 3000, "core_seconds": 6000, "peak_megabytes": 700})
    write_json(files.scores.run, {"seconds": 600, "core_seconds": 1200, "peak_megabytes": 650})
    megabytes = 2 * (files.fit.path.stat().st_size + files.scores.path.stat().st_size) / 1e6
    assert plan(request) == [
        "plan: 5 units to run: 2 recorded here, 3 never timed (taken as 60 s each)",
        f"plan: {(2 * 7200 + 3 * 60) / 3600:.2f} core-hours, 0.00 GPU-hours",
        f"plan: at most 700 MB in a process, {megabytes:.1f} MB of arrays of 2 of them",
    ]


def test_the_plan_of_the_paper_on_8_gpus_is_the_sum_of_its_units(tmp_path, monkeypatch):
    times = tmp_path / "suite_times.csv"
    rows = "fit,cifar10_resnet,vector,10,100\nevaluate,cifar10_resnet,vector,10,260\n"
    times.write_text(f"stage,benchmark,calibrator,splits,seconds\n{rows}fit,yahoo,vector,10,1\n")
    monkeypatch.setattr("pipeline.plan.TIMES", tmp_path)
    committed_seconds.cache_clear()
    folders = (f"paths.data={tmp_path}", f"paths.results={tmp_path}")
    request = request_of("suite=paper", "sweep.gpus=8", "sweep.seconds_of_unknown=90", *folders)
    benchmarks, methods, splits = 7, len(request.calibrators), 10
    on_gpus = 2 * methods * splits  # both ImageNet benchmarks, before there are logits
    on_cores = (benchmarks - 2) * methods * splits
    cores = (10 * 36 + (on_cores - 10) * 90) / 3600
    assert plan(request) == [
        f"plan: {on_gpus + on_cores} units to run: 10 by suite_times*.csv, "
        f"{on_gpus + on_cores - 10} never timed (taken as 90 s each)",
        f"plan: {cores:.2f} core-hours, {on_gpus * 90 / 3600:.2f} GPU-hours "
        f"({on_gpus * 90 / 3600 / 8:.2f} hours on 8 GPUs)",
    ]
    committed_seconds.cache_clear()
