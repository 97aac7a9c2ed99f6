"""Many units at once: how many, made by one process; a failure stops no other."""

import errno
import json
import multiprocessing
import os
import signal
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from tests.refusals import fails
from utility_calibration.pipeline.harness import parallel
from utility_calibration.pipeline.harness.artifacts import save_npz
from utility_calibration.pipeline.harness.machine import free_memory
from utility_calibration.pipeline.harness.parallel import (
    BYTES_PER_LOGIT,
    FEW_LOGITS,
    all_called,
    attempt,
    job_count,
    run_tasks,
)
from utility_calibration.pipeline.harness.task import Task
from utility_calibration.pipeline.harness.workers import UnitsFailed, can_fork, workers

SPAWN = multiprocessing.get_context("spawn")  # OpenMP does not survive a fork


def make(number, how, progress):
    """Save the number, or do what `how` says; a folder gets a file with the process's number."""
    if not isinstance(how, str):
        (how / str(os.getpid())).touch()
        time.sleep(120 if how.name == "endless" else 0)
    if how == "warn":
        warnings.warn(f"stopped after {number} steps", stacklevel=1)
    if how == "fail":
        raise ZeroDivisionError(f"in step {number}")
    if how == "user":
        raise UnitsFailed("of the user's")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return partial(save_npz, arrays={"a": np.array(number)}), {"number": number}


def examples(data, *hows, jobs=1):
    settings = SimpleNamespace(paths=SimpleNamespace(data=data), jobs=jobs, force=False)
    return [
        Task(
            name=f"example {number}",
            settings=settings,
            path=data / f"example/{number}.npz",
            key=f"k{number}",
            size=10,
            make=partial(make, number, how),
        )
        for number, how in enumerate(hows)
    ]


def made(tasks):
    return [task.is_up_to_date() for task in tasks]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_stops_no_other_and_equal_errors_are_told_once(tmp_path, capsys, jobs):
    tasks = examples(tmp_path, "", "fail", "", "fail", "user", "", jobs=jobs)
    error = "and 1 more: ZeroDivisionError"
    with fails(UnitsFailed, "3 of 6", error, "example 4: of the user's"):
        run_tasks("fit", tasks)
    assert made(tasks) == [True, False, True, False, False, True]
    assert capsys.readouterr().out.count("Traceback") == 1  # the user's error has none


def test_every_unit_is_a_line_of_the_log_and_equal_warnings_are_told_once(tmp_path, capsys):
    tasks = examples(tmp_path, "warn", "fail", "warn")
    with pytest.raises(UnitsFailed):
        run_tasks("fit", tasks)
    (log,) = tmp_path.glob("log/runs-*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["unit"] for line in lines] == [f"example/{number}" for number in range(3)]
    assert [line["error"] for line in lines] == ["", "ZeroDivisionError: in step 1", ""]
    assert lines[0]["warnings"] == ["stopped after 0 steps"]
    assert all(
        {"seconds", "core_seconds", "memory_mib", "host", "versions"} <= line.keys()
        for line in lines
    )
    told = capsys.readouterr().out
    assert "example 0 and 1 more" in told
    assert told.count("stopped after") == 1


def test_warnings_are_kept_for_the_caller_unless_the_run_fails(tmp_path, capsys):
    warned = []
    run_tasks("fit", examples(tmp_path / "a", "warn"), warned=warned)
    assert [line.count("stopped after 0 steps") for line in warned] == [1]
    assert "stopped" not in capsys.readouterr().out
    with pytest.raises(UnitsFailed):
        run_tasks("fit", examples(tmp_path / "b", "warn", "user"), warned=[])
    assert "stopped" in capsys.readouterr().out


@pytest.mark.slow
def test_a_killed_worker_is_told_and_the_same_call_makes_the_rest(tmp_path):
    tasks = examples(tmp_path, *[""] * 4, "kill", "", jobs=2)
    with fails(UnitsFailed, "killed"):
        run_tasks("fit", tasks)
    again = examples(tmp_path, *[""] * 6)
    run_tasks("fit", again)
    assert made(again) == [True] * 6


def test_jobs_are_as_many_as_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(parallel, "core_count", lambda: 8)
    monkeypatch.setattr(parallel, "free_memory", lambda: 3 * BYTES_PER_LOGIT * FEW_LOGITS)
    many = [FEW_LOGITS // 10] * 20
    assert job_count("auto", many) == 8
    assert job_count("auto", [*many, FEW_LOGITS]) == 3  # the largest unit decides
    assert job_count("auto", [FEW_LOGITS] * 2) == 2
    assert job_count("auto", [FEW_LOGITS // 20] * 20) == 1  # workers would not pay
    assert job_count(5, many) == 5
    assert job_count("auto", [], are_there=True) == job_count(5, []) == 1


def test_the_smallest_limit_of_the_groups_around_the_process_is_what_is_free(tmp_path):
    group = tmp_path / "user/job"
    group.mkdir(parents=True)
    for folder, largest in ((group, "max"), (group.parent, "7000")):
        (folder / "memory.max").write_text(f"{largest}\n")
        (folder / "memory.current").write_text("1700\n")
        (folder / "memory.stat").write_text("anon 100\ninactive_file 500\n")
    assert free_memory(group) == 7000 - 1700 + 500  # the cache of files is given back


def test_a_file_system_without_locks_is_one_line(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with fails(UnitsFailed, "paths."):
        run_tasks("fit", examples(tmp_path, ""))


def made_together(folder, barrier):
    barrier.wait(60)
    attempt(*examples(folder, folder / "notes"), wait=True)


def test_of_two_processes_one_makes_a_unit(tmp_path):
    (tmp_path / "notes").mkdir()
    barrier = SPAWN.Barrier(2)
    both = [SPAWN.Process(target=made_together, args=(tmp_path, barrier)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert [one.exitcode for one in both] == [0, 0]
    assert len(list((tmp_path / "notes").iterdir())) == 1
    assert made(examples(tmp_path, "")) == [True]


def hold(folder, held, end):
    def wait(progress):
        held.set()
        end.wait(60)

    (task,) = examples(folder, "")
    attempt(replace(task, make=wait), wait=True)


def test_a_held_unit_is_busy_until_its_holder_is_killed(tmp_path):
    held, end = SPAWN.Event(), SPAWN.Event()
    holder = SPAWN.Process(target=hold, args=(tmp_path, held, end))
    holder.start()
    assert held.wait(60)
    (task,) = examples(tmp_path, "")
    assert attempt(task, wait=False).state == "busy"
    assert not task.path.exists()
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(60)
    assert attempt(task, wait=False).state != "busy"
    assert task.is_up_to_date()


def run_endless(folder):
    notes = folder / "endless"
    run_tasks("fit", examples(folder, notes, notes, jobs=2))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_program(tmp_path, how):
    notes = tmp_path / "endless"
    notes.mkdir()
    program = SPAWN.Process(target=run_endless, args=(tmp_path,))
    program.start()
    workers = until(
        lambda: len(found := [int(path.name) for path in notes.iterdir()]) == 2 and found
    )
    os.kill(program.pid, how)
    program.join(20)
    assert until(lambda: not any(psutil.pid_exists(worker) for worker in workers))


def run_steps(folder, *hows):
    """Two steps of a program, in processes that leave their numbers in a folder for each step."""
    with workers():
        for step in "one", "two":
            (notes := folder / step).mkdir()
            with suppress(UnitsFailed):  # of the step with a killed worker
                run_tasks(step, examples(notes, notes, notes, *hows, jobs=2))


def made_by(folder):
    return [
        {path.name for path in (folder / step).iterdir() if path.name.isdigit()}
        for step in ("one", "two")
    ]


@pytest.mark.slow
def test_the_steps_of_a_program_share_their_workers_until_one_is_killed(tmp_path):
    for name, *hows in [("whole",), ("killed", "kill")]:
        (tmp_path / name).mkdir()
        program = SPAWN.Process(target=run_steps, args=(tmp_path / name, *hows))
        program.start()
        program.join(60)
        assert program.exitcode == 0
    first, second = made_by(tmp_path / "whole")
    assert str(os.getpid()) not in first | second
    assert len(first | second) <= 2
    first, second = made_by(tmp_path / "killed")
    assert second
    assert not first & second


def test_a_worker_is_no_fork_where_it_needs_threads(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert can_fork(1)
    assert not can_fork(2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert not can_fork(1)


def test_nothing_to_do_is_done_at_once(tmp_path, capsys):
    run_tasks("fit", [])
    assert all_called("powers", {}, "auto") == {}
    assert "fit: nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize("jobs", [1, 2])
def test_calls_answer_by_name_in_their_order(jobs):
    calls = {"b": partial(pow, 2, 3), "a": partial(divmod, 7, 2)}
    assert list(all_called("powers", calls, jobs).items()) == [("b", 8), ("a", (3, 1))]


def until(condition, seconds=60):
    """The condition's value as soon as it is true; its last value after so many seconds."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value
