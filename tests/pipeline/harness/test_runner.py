"""Many units: in one process or several, none of them stopped by another's failure."""

import os
import signal
import time
import warnings
from functools import partial

import pytest

from metrics import InputError
from pipeline.harness import machine, runner
from pipeline.harness.command import UnitsFailed
from pipeline.harness.machine import has_no_gpu
from pipeline.harness.runner import (
    Outcome,
    attempt,
    close,
    job_count,
    run_tasks,
    workers_starting,
)
from tests.waiting import is_alive, wait_until


def process_of(task):
    """Where a task runs; `bad` ones fail in one of two ways, `kill` takes its process along."""
    if task == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "bad input":
        raise InputError("logits: no rows; give some")
    if task.startswith("bug"):
        raise ZeroDivisionError(f"in {task}")
    time.sleep(0.01)


TASKS = ["a", "bad input", "b", "bug 1", "bug 2", "c"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_failures_stop_nothing(jobs):
    outcomes = {outcome.task: outcome for outcome in run_tasks("test", TASKS, process_of, jobs)}
    assert set(outcomes) == set(TASKS)
    assert [task for task in TASKS if outcomes[task].error is None] == ["a", "b", "c"]
    assert outcomes["bad input"].error == "logits: no rows; give some"
    assert outcomes["bad input"].details == ""
    assert outcomes["bug 1"].error == "ZeroDivisionError: in bug 1"
    assert "Traceback" in outcomes["bug 1"].details


def test_a_killed_worker_fails_what_it_had_and_says_why():
    outcomes = run_tasks("test", ["kill", *"abcdefgh"], process_of, 2)
    failed = {outcome.task: outcome.error for outcome in outcomes if outcome.error}
    assert "kill" in failed
    assert "jobs=1" in failed["kill"]
    assert len(outcomes) == 9


KEPT = []


def keep_memory(task):
    """As a large unit may; loky looks every second and replaces such a process."""
    KEPT.append(bytearray(b"x") * 350_000_000)
    time.sleep(1.1)
    return os.getpid()


def test_a_worker_that_keeps_memory_is_replaced_without_a_remark(recwarn, capfd):
    outcomes = run_tasks("test", list("abcdef"), keep_memory, 2)
    assert [outcome.error for outcome in outcomes] == [None] * 6
    assert "worker" not in capfd.readouterr().err
    assert not list(recwarn)


def test_tiny_tasks_stay_in_this_process(monkeypatch):
    monkeypatch.setattr(runner, "_in_processes", lambda *_: pytest.fail("started processes"))
    assert len(run_tasks("test", list("abcdef"), process_of, 2, start_here=True)) == 6


def test_slow_tasks_move_to_processes(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS_TO_START", 0.01)
    handed_over = []

    def in_processes(tasks, function, jobs):
        handed_over.extend(tasks)
        return (attempt(function, task) for task in tasks)

    monkeypatch.setattr(runner, "_in_processes", in_processes)
    assert len(run_tasks("test", list("abcdef"), process_of, 2, start_here=True)) == 6
    assert handed_over == list("cdef")


def note_process(folder, workers, task=""):
    """Leave the process's number, and wait until all have: each of so many gets a task."""
    (folder / f"{os.getpid()}").touch()
    wait_until(lambda: len(list(folder.iterdir())) >= workers)


def on(device, jobs=2):
    return {"jobs": jobs, "device": device}


@pytest.fixture
def noting(tmp_path):
    """`noting(name, workers)` -> a task's function, and who has run it by then."""

    def make(name, workers):
        folder = tmp_path / name
        folder.mkdir()

        def numbers():
            return {int(path.name) for path in folder.iterdir()}

        return partial(note_process, folder, workers), numbers

    return make


def test_workers_that_were_started_ahead_run_the_tasks_and_this_process_none(noting):
    (warm_up, ahead), (function, numbers) = noting("ahead", 2), noting("tasks", 1)
    with workers_starting(on("cpu"), 20, warm_up):
        wait_until(lambda: len(ahead()) == 2)
    run_tasks("test", list("abcdef"), function, 2, start_here=True)
    assert numbers() <= ahead()


def test_few_small_tasks_go_to_more_processes_that_wait_and_large_ones_to_as_many_as_asked(noting):
    (three, first), (small, few), (large, others) = map(noting, "abc", (3, 1, 2))
    run_tasks("test", list("abc"), three, 3)
    run_tasks("test", list("ab"), small, 2, start_here=True)
    assert few() <= first()
    run_tasks("test", list("ab"), large, 2)
    assert not others() & first()


def test_processes_that_have_waited_too_long_are_gone(noting, monkeypatch):
    function, _ = noting("first", 2)
    run_tasks("test", list("ab"), function, 2)
    monkeypatch.setattr(runner, "SECONDS_IDLE", 0.0)
    function, numbers = noting("second", 1)
    run_tasks("test", ["a"], function, 2, start_here=True)
    assert numbers() == {os.getpid()}


def test_where_no_processes_can_start_ahead_the_block_is_done(monkeypatch):
    def refused(jobs):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(runner, "_workers", refused)
    with workers_starting(on("cpu"), 20, os.getpid):
        done = True
    assert done


def test_an_error_while_workers_start_ends_them():
    with pytest.raises(InputError), workers_starting(on("cpu"), 20, partial(time.sleep, 60)):
        processes = list(runner._started[0].pool._processes)
        raise InputError("logits: no rows; give some")
    assert processes and not any(is_alive(number) for number in processes)


@pytest.mark.parametrize("settings", [on("cuda"), on("cpu", jobs=1)])
def test_no_workers_start_where_this_process_does_it_all(settings):
    with workers_starting(settings, 20, os.getpid):
        assert not runner._started


def test_only_a_machine_without_a_driver_is_taken_to_have_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "DRIVERS", (tmp_path / "nvidia", tmp_path / "kfd"))
    assert has_no_gpu("auto") and has_no_gpu("cpu") and not has_no_gpu("cuda")
    (tmp_path / "kfd").touch()
    assert has_no_gpu("cpu") and not has_no_gpu("auto")


def test_a_worker_that_was_killed_while_it_waited_costs_nothing(noting):
    function, numbers = noting("first", 2)
    run_tasks("test", list("ab"), function, 2)
    os.kill(min(numbers()), signal.SIGKILL)
    wait_until(lambda: runner._started[0].pool._flags.broken)
    outcomes = run_tasks("test", list("abcd"), process_of, 2)
    assert [outcome.error for outcome in outcomes] == [None] * 4


def test_as_many_processes_as_cores_units_and_memory_allow(monkeypatch):
    monkeypatch.setattr(runner, "core_count", lambda: 8)
    monkeypatch.setattr(runner, "free_memory", lambda: 16 << 30)
    small, large = [10_000 * 100] * 50, [50_000 * 1000] * 50
    assert job_count("auto", small, "cpu") == 8
    assert job_count("auto", small[:3], "cpu") == 3
    assert job_count("auto", small + large, "cpu") == 4, "memory for 5, and 8 cores for 4 alike"
    assert job_count("auto", [1_000_000 * 1000] * 2, "cpu") == 1
    assert job_count("auto", small, "cuda") == 1
    assert job_count(3, large, "cuda") == 3


def test_closing_lines_group_equal_errors(capsys):
    outcomes = run_tasks("fit", TASKS, process_of, 1)
    with pytest.raises(UnitsFailed, match="fit: 3 of 7 failed"):
        close("fit", outcomes, ["z"], lambda task: task[:1])
    printed = capsys.readouterr().out
    assert "failed: bug 1 and 1 more: ZeroDivisionError: in bug 1" in printed
    assert "failed: bad input: logits: no rows; give some" in printed
    assert printed.count("Traceback") == 1


def warn(task):
    gap = f"{ord(task[0])}e-09"
    warnings.warn(f"stopped {gap} above;\nraise max_iterations", stacklevel=2)
    process_of(task)


@pytest.mark.parametrize("jobs", [1, 2])
def test_equal_warnings_are_one_line_that_names_a_unit(jobs, capfd):
    outcomes = run_tasks("fit", ["a", "b", "bad input"], warn, jobs)
    first, gap = outcomes[0].task, ord(outcomes[0].task[0])
    printed = capfd.readouterr()
    line = f"warning: {first} and 2 more: stopped {gap}e-09 above; raise max_iterations\n"
    assert line in printed.out
    assert printed.out.count("stopped") == 1 and "stopped" not in printed.err


def test_a_stopped_run_tells_what_its_units_warned_of(capsys):
    def interrupted(task):
        if task == "b":
            raise KeyboardInterrupt
        warn(task)

    with pytest.raises(KeyboardInterrupt):
        run_tasks("fit", ["a", "b"], interrupted, 1)
    assert "warning: a: stopped" in capsys.readouterr().out


def test_one_failed_unit_is_its_error():
    outcome = Outcome("digits vector split 0", 1.0, "the reason")
    with pytest.raises(UnitsFailed, match=r"^digits vector split 0: the reason$"):
        close("fit", [outcome], [], str)


def test_the_traceback_of_one_failed_unit_stands_before_its_line(capsys):
    with pytest.raises(UnitsFailed, match=r"^bug 1: ZeroDivisionError: in bug 1$"):
        close("fit", run_tasks("fit", ["bug 1"], process_of, 1), [], str)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "ZeroDivisionError: in bug 1"


def test_progress_lines_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("pipeline.harness.progress.SECONDS_BETWEEN_LINES", 0.0)
    run_tasks("fit", ["a", "b"], process_of, 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("fit: 1/2 after 0 s, about 0 s left (a)")
    monkeypatch.setattr("pipeline.harness.progress.SECONDS_BETWEEN_LINES", 60.0)
    run_tasks("fit", ["a", "b"], process_of, 1)
    assert capsys.readouterr().out == ""
