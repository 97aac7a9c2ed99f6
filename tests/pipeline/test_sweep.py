"""sweep: units become jobs by recorded times; every job ends with one line, however it ended."""

import math
import os
import signal
import subprocess
import sys
import warnings
from collections import namedtuple
from functools import partial
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf
from pipeline.harness.engines import Ended, run_jobs
from pipeline.harness.locks import claimed
from pipeline.harness.runner import attempt, warning_lines
from pipeline.harness.unit_stage import make_once

from pipeline.fit import fit_tasks
from pipeline.harness import engines
from pipeline.harness.artifacts import read_json, write_json
from pipeline.harness.command import CONF, Terminated
from pipeline.harness.units import composed, sweep_settings
from pipeline.status import states
from pipeline.sweep import (
    DynamicsJob,
    UnitsJob,
    chunks,
    closing,
    units_at_once,
    workers_ahead,
)
from tests.pipeline.conftest import request_of
from tests.waiting import is_alive, wait_until

GOOD, BAD, KILLED = partial(int, "7"), partial(int, "x"), partial(os._exit, 9)
BASIC = {"_target_": "hydra._internal.core_plugins.basic_launcher.BasicLauncher"}
SUBMITIT = "hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher"
LOCAL = {"_target_": SUBMITIT, "timeout_min": 5, "cpus_per_task": 1, "stderr_to_stdout": True}
JOBLIB = {
    "_target_": "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher",
    "n_jobs": 1,
}


def test_a_job_takes_as_many_units_as_fit_into_its_minutes(request_tiny):
    request = request_tiny("suite.calibrators=[temperature,vector]")
    units = request.units()
    assert units[0].settings["sweep"]["seconds_of_unknown"] == 60
    for name, path in (("fit", units[0].files.fit.run), ("metrics", units[0].files.scores.run)):
        write_json(path, {"seconds": 15 if name == "fit" else 10})
    jobs = chunks(request, "file", units, seconds=50, at_once=1)
    assert [job.members for job in jobs] == [
        (("temperature", 0), ("temperature", 1)),  # 25 s each, by the one that ran
        (("temperature", 2),),
        (("vector", 0),),  # never timed: longer than a job is to last, so alone
        (("vector", 1),),
        (("vector", 2),),
    ]
    assert str(jobs[0]) == "file temperature split 0 … temperature split 1 (2 units)"
    assert len(chunks(request, "file", units, seconds=math.inf, at_once=1)) == 1
    assert engines.runs_here(BASIC) and not engines.runs_here(LOCAL)


@pytest.mark.parametrize(("at_once", "jobs"), [(1, 3), (2, 2), (3, 1), (None, 1)])
def test_a_job_that_does_several_units_at_once_takes_more(request_tiny, at_once, jobs):
    request = request_tiny("calibrator=temperature")
    units = request.units()
    for path in (units[0].files.fit.run, units[0].files.scores.run):
        write_json(path, {"seconds": 5, "core_seconds": 20})
    assert len(chunks(request, "file", units, seconds=40, at_once=at_once)) == jobs


def test_a_job_has_the_cores_asked_for_or_its_share(monkeypatch):
    monkeypatch.setattr(engines, "core_count", lambda: 6)
    launchers = {
        name: sweep_settings([f"hydra/launcher={name}"])[0] for name in ("basic", "slurm", "cores")
    }
    assert {name: engines.cores_of_a_job(one) for name, one in launchers.items()} == {
        "basic": 6, "slurm": 4, "cores": 1,
    }  # fmt: skip
    assert engines.cores_of_a_job(launchers["cores"] | {"n_jobs": 3}) == 2
    assert engines.cores_of_a_job({"ray": {"remote": {"num_cpus": 8}}}) == 8
    assert engines.cores_of_a_job({"ray": {"remote": None}}) == 1
    slurm = launchers["slurm"]
    assert [units_at_once(jobs, slurm) for jobs in ("auto", 1, 2, 16)] == [4, 1, 2, 4]
    assert units_at_once("auto", slurm | {"gpus_per_node": 1}) is None


def test_a_sweep_tells_an_unknown_metric_before_it_makes_logits(tmp_path):
    folders = (f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / 'results'}")
    asked = ("benchmark=digits", "benchmark.metrics=[u_cwo]", *folders)
    command = [sys.executable, "-m", "pipeline.sweep", *asked]
    told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CONF.parent)
    assert told.returncode == 1
    assert "u_cwo is no metric (did you mean u_cwe?)" in told.stderr
    assert not list(tmp_path.rglob("*.npz"))


def test_a_sweep_without_its_report_leaves_only_that_to_the_stages(
    request_tiny, tmp_path, measured_child
):
    request = request_tiny("calibrator=temperature", "sweep.report=false")
    command = [sys.executable, "-m", "pipeline.sweep", "benchmark=file", "calibrator=temperature"]
    told = subprocess.run(
        [*command, *request.overrides],
        capture_output=True, text=True, check=False, cwd=CONF.parent, env=measured_child,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert [state.name for state in states(request.units())] == ["done"] * 3
    assert not (tmp_path / "results/tables").exists()


@pytest.mark.parametrize(
    ("asked", "count"),
    [("suite=digits", 70), ("calibrator=temperature", 0), ("suite=cifar", 0)],
    ids=["many", "few", "beside a network"],
)
def test_workers_start_ahead_where_that_pays(asked, count, monkeypatch):
    told = []
    monkeypatch.setattr("pipeline.sweep.workers_starting", lambda *some: told.append(some[1]))
    workers_ahead(request_of(asked).units())
    assert told == [count] * bool(count)


def test_a_job_fits_and_evaluates_its_units_and_no_others(request_tiny):
    request = request_tiny("calibrator=temperature")
    UnitsJob(request, "file", (("temperature", 0), ("temperature", 2)))()
    assert [state.name for state in states(request.units())] == ["done", "missing", "done"]


def test_the_study_is_a_job_per_benchmark(request_tiny, tmp_path):
    few = ("dynamics.iterations=2", "dynamics.utilities=8", "dynamics.misaligned.subsets=2")
    more = ("split=0", "dynamics.snapshots=[0,2]", "dynamics.floor_draws=0")
    job = DynamicsJob(request_tiny(*more, *few), "file")
    assert not job.is_done()
    job()
    assert job.is_done()
    assert (tmp_path / "results/dynamics/tiny-aligned/dynamics.json").is_file()
    assert str(job) == "dynamics file"


@pytest.mark.parametrize("launcher", [BASIC, JOBLIB], ids=["here", "joblib"])
def test_a_failed_job_is_one_line_and_the_others_are_done(launcher, tmp_path):
    ended = list(run_jobs([([BAD, GOOD], launcher)], tmp_path))
    assert [one.error for one in ended] == ["invalid literal for int() with base 10: 'x'", None]


def test_a_killed_process_costs_its_job_alone_and_says_where_the_log_is(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "LOOKS_BETWEEN_QUESTIONS", 1)  # as if jobs lasted
    ended = {one.job: one for one in run_jobs([([KILLED, BAD, GOOD], LOCAL)], tmp_path)}
    assert ended[GOOD].error is None
    assert ended[BAD].error == "invalid literal for int() with base 10: 'x'"
    assert ended[KILLED].error == "killed, perhaps out of memory"
    assert all(one.log.parent == tmp_path and one.log.is_file() for one in ended.values())
    assert "ValueError: invalid literal" in ended[BAD].log.read_text()


def test_groups_of_jobs_run_side_by_side_and_end_with_their_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "core_count", lambda: 2)
    note = tmp_path / "pid"
    lasting = partial(os.execlp, "sh", "sh", "-c", f"echo $$ > {note}; exec sleep 3600")
    ended = run_jobs([([lasting], LOCAL), ([GOOD], LOCAL)], tmp_path)
    assert next(ended).job is GOOD
    wait_until(lambda: note.is_file() and note.read_text().strip())
    process = int(note.read_text())
    assert is_alive(process)
    ended.close()  # as SIGTERM and Ctrl-C do
    wait_until(lambda: not is_alive(process))


def test_a_stopped_sweep_says_how_to_end_its_jobs_on_slurm(capsys):
    running = [SimpleNamespace(job_id=text) for text in ("46_0", "46_1", "47")]
    engines._leave(running, "slurm")
    engines._leave([], "slurm")
    assert capsys.readouterr().out == "slurm: its jobs go on; to end them: scancel 46 47\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_amid_the_submission_waits_until_the_jobs_are_recorded(
    number, tmp_path, monkeypatch, capsys
):
    submitted = namedtuple("submitted", "job_id")

    def submit(jobs):
        os.kill(os.getpid(), number)
        return [submitted(f"46_{one}") for one in range(len(jobs))]

    def stop(*_):
        raise Terminated

    fake = SimpleNamespace(cluster="slurm", folder=tmp_path, submit_array=submit)
    monkeypatch.setattr(engines, "_executor", lambda *_: fake)
    slurm = {"_target_": SUBMITIT.replace("LocalLauncher", "SlurmLauncher")}
    before = signal.signal(number, stop)
    try:
        with pytest.raises(Terminated):
            list(run_jobs([([GOOD, BAD], slurm)], tmp_path))
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert "to end them: scancel 46\n" in capsys.readouterr().out


def test_what_another_sweep_leaves_undone_becomes_a_job(request_tiny, tmp_path, measured_child):
    request = request_tiny("calibrator=temperature", "split=0", "sweep.report=false")
    (unit,) = request.units()
    command = [sys.executable, "-m", "pipeline.sweep", "benchmark=file", "calibrator=temperature"]
    with claimed(unit.files.fit.running, str(unit), "another"):
        sweep = subprocess.Popen(
            [*command, *request.overrides, "split=0"],
            stdout=subprocess.PIPE, text=True, cwd=CONF.parent, env=measured_child,
        )  # fmt: skip
        assert sweep.stdout is not None
        lines = iter(sweep.stdout.readline, "")
        assert any("waiting: others work on 1 of the units" in line for line in lines)
    rest = sweep.communicate(timeout=120)[0]
    assert "[1/1] done: file temperature split 0" in rest
    assert "sweep: 2 of 2 jobs done, 0 failed" in rest
    assert "fit: nothing to do, 1 up to date" in rest


def test_equal_errors_are_told_once_with_the_logs(tmp_path):
    ended = [Ended("one", "cancelled", tmp_path / "1"), Ended("two", "cancelled"), Ended("three")]
    lines = list(closing(ended, [], began=0.0))
    assert lines == [
        "sweep: 1 of 3 jobs done, 2 failed",
        "failed, 2 jobs: cancelled",
        f"    one: {tmp_path / '1'}",
        "    two",
    ]


@pytest.mark.parametrize("name", ["basic", "cores", "queue", "slurm"])
def test_every_launcher_of_conf_has_an_engine(name):
    from hydra import compose, initialize_config_dir

    from pipeline.harness.command import CONF

    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", [f"hydra/launcher={name}"], return_hydra_config=True)
    target = OmegaConf.select(config, "hydra.launcher._target_")
    run_jobs([([], {"_target_": target, "n_jobs": 1})], CONF)
    assert composed([]).sweep.minutes_per_job > 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_units_warned_of_is_kept_and_told_where_logs_alone_hold_it(request_tiny, jobs, capfd):
    request = request_tiny("calibrator=vector", "calibrator.max_iterations=1", f"jobs={jobs}")
    units = request.units()
    UnitsJob(request, "file", tuple(("vector", split) for split in range(3)))()
    printed = capfd.readouterr().out
    (line,) = warning_lines((u, w) for u in units for w in read_json(u.files.fit.run)["warnings"])
    assert line.startswith("warning: tiny vector split 0 and 2 more: VectorScaling: stopped after")
    assert "and 2 more: VectorScaling: stopped" in printed and printed.count("stopped after") == 1
    assert line in closing([], units, began=0.0, warned=True)
    assert line not in closing([], units, began=0.0)


def test_what_a_failing_unit_warned_of_is_told(request_tiny):
    def make(task, device):
        warnings.warn("few points", stacklevel=1)
        raise ZeroDivisionError

    task = fit_tasks(request_tiny("calibrator=vector", "split=0").units())[0]
    outcome = attempt(partial(make_once, make=make), task)
    assert outcome.warnings == ("few points",) and "ZeroDivisionError" in outcome.error
