"""status: what is done, running, stale and why, missing; and what a plan sums up."""

import pytest

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.artifacts import write_json
from pipeline.harness.locks import claimed
from pipeline.status import details, plan_lines, states


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
    with claimed(unit.files.metrics_running, str(unit), "aim"):
        assert [name for name, _ in names(request)] == ["done", "running", "missing"]
    unit.files.metrics_running.write_text("{}")  # of a process that was killed
    assert [name for name, _ in names(request)] == ["done", "missing", "missing"]
    assert "1 of 3 units are done" in list(details(states(request.units())))


def test_stale_units_say_why(made, tmp_path, monkeypatch):
    assert names(made("calibrator=temperature", "seed=1"))[0] == ("stale", "settings")
    assert names(made("calibrator=temperature", "evaluation.bins=5"))[0] == ("stale", "settings")
    monkeypatch.setattr("pipeline.fit.source_fingerprint", lambda *targets: "other code")
    assert names(made("calibrator=temperature"))[0] == ("stale", "code")
    monkeypatch.undo()
    write_json(tmp_path / "data/logits/tiny.json", {"sha256": "other"})
    assert names(made("calibrator=temperature"))[0] == ("stale", "logits")


def test_a_plan_is_the_recorded_time_of_what_is_left(made):
    request = made("suite.calibrators=[temperature,vector]")
    files = request.units()[0].files
    write_json(files.fit_run, {"seconds": 3000})
    write_json(files.metrics_run, {"seconds": 600})
    first, second = plan_lines(states(request.units()))
    assert first == "plan: 5 units to run; 2 of them 2.00 process hours"
    assert second == "plan: 3 units of pairs that were never timed here"
