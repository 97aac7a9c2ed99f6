"""One process at a time: the second one waits for the first, or says who is there and ends."""

import os
from threading import Event, Thread

from tests.refusals import fails
from utility_calibration.pipeline.harness import lock
from utility_calibration.pipeline.harness.parameters import UsageError


def test_a_second_process_names_the_first_and_waits_or_ends(tmp_path, monkeypatch):
    order, waits, path = [], Event(), tmp_path / "locks/results.lock"
    monkeypatch.setattr(lock, "say", lambda text: waits.set())

    def second():
        with lock.alone(path, "results"):
            order.append("second")

    thread = Thread(target=second)
    with lock.alone(path, "results"):
        with (
            fails(UsageError, "results", f"process {os.getpid()}", "another"),
            lock.alone(path, "results", fix="another"),
        ):
            order.append("never")
        thread.start()
        assert waits.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
