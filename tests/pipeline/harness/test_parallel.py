"""Many units at once: one failure stops no other, and everything is told once."""

from __future__ import annotations

import json
import os
import signal
import warnings
from functools import partial

import numpy as np
import pytest
from filelock import FileLock

from pipeline.harness import parallel
from pipeline.harness.artifacts import save_npz
from pipeline.harness.command import UnitsFailed
from pipeline.harness.parallel import BYTES_PER_LOGIT, Task, job_count, run_tasks


def make(number, how, device, progress):
    """Save the number, or do what `how` says."""
    if how == "warn":
        warnings.warn(f"stopped after {number} steps", stacklevel=1)
    if how == "fail":
        raise ZeroDivisionError(f"in step {number}")
    if how == "user":
        raise UnitsFailed("of the user's")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return partial(save_npz, arrays={"a": np.array(number)}), {"number": number}


def examples(data, *hows, jobs=1, force=False):
    settings = {"paths": {"data": str(data)}, "device": "cpu", "jobs": jobs, "force": force}
    return [
        Task(
            name=f"example {number}",
            row="examples",
            settings=settings,
            path=data / f"example/{number}.npz",
            key=f"k{number}",
            size=10,
            make=partial(make, number, how),
        )
        for number, how in enumerate(hows)
    ]


def made(tasks):
    return [task.is_current() for task in tasks]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_stops_no_other_and_equal_errors_are_told_once(tmp_path, capsys, jobs):
    tasks = examples(tmp_path, "", "fail", "", "fail", "user", "", jobs=jobs)
    with pytest.raises(UnitsFailed, match=r"^fit: 3 of 6 failed; the others are done$"):
        run_tasks("fit", tasks)
    assert made(tasks) == [True, False, True, False, False, True]
    told = capsys.readouterr().out
    assert told.count("Traceback") == 1  # the user's error has none
    assert told.count("failed: example") == 2
    assert "and 1 more: ZeroDivisionError: in step" in told
    assert "failed: example 4: of the user's" in told


def test_the_failure_of_a_single_unit_is_the_error(tmp_path):
    with pytest.raises(UnitsFailed, match=r"^example 0: ZeroDivisionError: in step 0$"):
        run_tasks("fit", examples(tmp_path, "fail"))


def test_equal_warnings_are_told_once_with_their_count(tmp_path, capsys):
    run_tasks("fit", examples(tmp_path, "warn", "warn", "", "warn"))
    told = capsys.readouterr().out
    assert "warning: example 0 and 2 more: stopped after 0 steps" in told
    assert told.count("stopped after") == 1


def test_every_unit_is_a_line_of_the_log_and_nothing_to_do_is_none(tmp_path, capsys):
    tasks = examples(tmp_path, "warn", "fail", "")
    with pytest.raises(UnitsFailed):
        run_tasks("fit", tasks)
    (log,) = tmp_path.glob("log/runs-*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["unit"] for line in lines] == [f"example/{number}" for number in range(3)]
    assert [line["error"] for line in lines] == ["", "ZeroDivisionError: in step 1", ""]
    assert lines[0]["warnings"] == ["stopped after 0 steps"]
    assert [line["key"] for line in lines] == ["k0", "k1", "k2"]
    capsys.readouterr()
    run_tasks("fit", [tasks[0], tasks[2]])
    assert "fit: nothing to do, 2 up to date" in capsys.readouterr().out
    assert len(log.read_text().splitlines()) == 3
    run_tasks("fit", examples(tmp_path, "", force=True))
    assert len(log.read_text().splitlines()) == 4


def test_a_log_that_cannot_be_written_costs_no_unit(tmp_path):
    (tmp_path / "log").write_text("a file where the folder would be")
    tasks = examples(tmp_path, "", "")
    run_tasks("fit", tasks)
    assert made(tasks) == [True, True]


@pytest.mark.slow
def test_a_killed_worker_is_told_and_the_same_call_makes_the_rest(tmp_path, capsys):
    tasks = examples(tmp_path, *[""] * 4, "kill", "", jobs=2)
    with pytest.raises(UnitsFailed):
        run_tasks("fit", tasks)
    assert parallel.KILLED in capsys.readouterr().out
    again = examples(tmp_path, *[""] * 6)
    run_tasks("fit", again)
    assert made(again) == [True] * 6


def test_a_unit_that_another_process_holds_is_waited_for_at_the_end(tmp_path, capsys):
    tasks = examples(tmp_path, "", "")
    (tmp_path / "locks").mkdir()
    # A lock of this process on another descriptor keeps it out as another process would.
    other = FileLock(tmp_path / "locks/example-0.lock")
    other.acquire()
    seen = []

    class Releasing(parallel.Bar):
        def advance(self, what):
            seen.append((what, made(tasks)))
            other.release()
            super().advance(what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "Bar", Releasing)
        run_tasks("fit", tasks)
    assert seen == [("example 1", [False, True]), ("example 0", [True, True])]
    assert "waiting: another process works on example 0" in capsys.readouterr().out


def test_jobs_are_as_many_as_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(parallel, "core_count", lambda: 8)
    monkeypatch.setattr(parallel, "free_memory", lambda: 3 * BYTES_PER_LOGIT * 1000)
    many = [10] * 20
    assert job_count("auto", many, "cpu") == 8
    assert job_count("auto", [*many, 1000], "cpu") == 3  # the largest unit decides
    assert job_count("auto", [10_000] * 9, "cpu") == 1
    assert job_count("auto", [10, 10], "cpu") == 2
    assert job_count("auto", many, "cuda:0") == 1
    assert job_count(5, many, "cpu") == 5
    assert job_count("5", many, "cuda") == 5
    assert job_count(50, many, "cpu") == 20


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr("pipeline.harness.progress.SECONDS_BETWEEN_LINES", -1.0)
    with parallel.Bar("fit", 3) as bar:
        bar(1, 3, "first")
        bar.advance("second")
    assert capsys.readouterr().out == "fit: 1 of 3 (first)\nfit: 2 of 3 (second)\n"
