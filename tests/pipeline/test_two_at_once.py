"""Two processes on the same unit: never results of one with the record of the other.

The number of rounds is small here; ROUNDS=200 in the environment makes them as many as one likes.
"""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import threading
from contextlib import suppress

import numpy as np
import pytest
from pipeline.harness.locks import Busy, OtherSettings, claimed

from pipeline.evaluate import EvaluateTask, evaluate_unit
from pipeline.fit import FitTask, fit_tasks, fit_unit
from pipeline.harness import locks
from pipeline.harness.artifacts import read_npz
from pipeline.logits import logits_aim, make_logits, run_logits

ROUNDS = int(os.environ.get("ROUNDS", "8"))


def refuse(*_):
    """Of a file system that refuses locks, as NFS without its lock service does."""
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def make(task):
    """Fit or evaluate one unit, unless the other process keeps us from it."""
    with suppress(Busy, OtherSettings):
        (fit_unit if isinstance(task, FitTask) else evaluate_unit)(task)


def is_made(task):
    return task.is_done()


def arrays_of(task):
    """What lies in the unit's folder now, as bytes."""
    arrays = read_npz(task.archive.path)
    return b"".join(np.asarray(arrays[name]).tobytes() for name in sorted(arrays))


def work(tasks, meet, without_locks):
    """One of the two processes: each task as soon as both are ready; then it is looked at."""
    if without_locks:
        locks.flock = refuse
    for _ in range(ROUNDS):
        for task in tasks:
            for step in (lambda: None, lambda task=task: make(task), lambda: None):
                step()
                meet.wait(120)


def side_by_side(ours, theirs, look, without_locks):
    """Run two lists of tasks at once, pair by pair, and `look(pair)` after each."""
    context = multiprocessing.get_context("spawn")  # OpenMP does not survive a fork
    meet = context.Barrier(3)
    children = [
        context.Process(target=work, args=(tasks, meet, without_locks), daemon=True)
        for tasks in (ours, theirs)
    ]
    for child in children:
        child.start()
    for _ in range(ROUNDS):
        for pair in zip(ours, theirs, strict=True):
            meet.wait(120)
            meet.wait(120)
            look(pair)
            meet.wait(120)
    for child in children:
        child.join()


@pytest.fixture
def tasks_of(request_tiny, tmp_path):
    """Fit tasks of two calibrators and the tasks of evaluating them, under some settings."""

    def tasks(results, fit_options=(), evaluation_options=()):
        def units(folder, *options):
            return request_tiny(
                "suite.calibrators=[vector,temperature]", "split=0", "force=true",
                f"paths.results={tmp_path / folder}", *options,
            ).units()  # fmt: skip

        fits = fit_tasks(units(results, *fit_options))
        fitted = fit_tasks(units(f"{results}-scores", *evaluation_options))
        for fit in fitted:
            fit_unit(fit)
        return [*fits, *(EvaluateTask.of(fit) for fit in fitted)]

    run_logits(request_tiny().benchmark_settings())
    return tasks


@pytest.mark.parametrize("without_locks", [False, True], ids=["locks", "no locks"])
def test_results_of_different_settings_never_mix(tasks_of, without_locks):
    settings = (["seed=0"], ["seed=0"]), (["seed=1"], ["evaluation.utility_seed=1"])
    expected = {}
    for number, options in enumerate(settings):
        for task in tasks_of(f"alone-{number}", *options):
            make(task)
            expected[task.hash] = arrays_of(task)
    assert len(set(expected.values())) == 8

    def look(pair):
        made = [task for task in pair if is_made(task)]
        assert len(made) == 1, "both settings, or neither, are said to lie there"
        assert arrays_of(made[0]) == expected[made[0].hash]

    ours, theirs = (tasks_of("shared", *options) for options in settings)
    side_by_side(ours, theirs, look, without_locks)


def test_who_holds_a_unit_is_told_and_other_settings_are_refused(tmp_path):
    path = tmp_path / "running-fit.json"
    with claimed(path, "tiny vector split 0", "one"):
        with (
            pytest.raises(Busy, match=rf"tiny vector split 0: process {os.getpid()} on \S+ works"),
            claimed(path, "tiny vector split 0", "one"),
        ):
            pass
        with (
            pytest.raises(OtherSettings, match="with other settings since"),
            claimed(path, "tiny vector split 0", "two"),
        ):
            pass
    assert not path.exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_without_locks_nobody_waits_for_a_file_that_was_left(tmp_path, monkeypatch, number):
    def refuse_so(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks, "flock", refuse_so)
    path = tmp_path / "running-fit.json"
    path.write_text('{"host": "elsewhere", "aim": "two"}')
    assert locks.holder_of(path) is None
    with claimed(path, "tiny vector split 0", "one"):
        pass


def test_a_lock_file_that_still_names_its_last_holder_refuses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "running-fit.json"
    path.write_text('{"aim": "two"}')  # of one that was killed
    lock = locks._locked(path)
    meanwhile = '{"process": 7, "host": "here", "aim": "one"}'
    monkeypatch.setattr(locks.time, "sleep", lambda _: path.write_text(meanwhile))
    with pytest.raises(Busy, match="process 7 on here works"), claimed(path, "tiny", "one"):
        pass
    os.close(lock)


def test_logits_are_made_by_one_process_and_the_others_wait(request_tiny, tmp_path, capsys):
    (settings,) = request_tiny().benchmark_settings()
    path = tmp_path / "data/logits/tiny.npz"
    aim = logits_aim(settings)
    held, released = threading.Event(), threading.Event()

    def another():
        with claimed(path.with_suffix(".running.json"), "logits tiny", aim):
            held.set()
            released.wait(60)
            make_logits(settings)

    thread = threading.Thread(target=another)
    thread.start()
    held.wait(60)
    threading.Timer(1.5, released.set).start()
    run_logits([settings])
    thread.join()
    printed = capsys.readouterr().out
    assert f"waiting: logits tiny: process {os.getpid()} on" in printed
    assert "logits: tiny, made by another process" in printed


@pytest.mark.parametrize("damage", ["absent", "{", "{}", "null", "edited", "without checksum"])
def test_logits_without_a_readable_sidecar_heal(request_tiny, tmp_path, damage):
    (unit,) = request_tiny("calibrator=temperature", "split=0").units()
    run_logits(request_tiny().benchmark_settings())
    sidecar = tmp_path / "data/logits/tiny.json"
    before = sidecar.read_bytes()
    sidecar.unlink()
    if damage == "edited":
        sidecar.write_bytes(before.replace(b'"classes": 3', b'"classes": 4'))
    elif damage == "without checksum":
        record = json.loads(before)
        del record["checksum"]
        sidecar.write_text(json.dumps(record))
    elif damage != "absent":
        sidecar.write_text(damage)
    assert fit_tasks([unit])[0].logits.n == 200
    assert sidecar.read_bytes() == before
