"""Files and units: whole or absent, made by one process, named by their key."""

from __future__ import annotations

import multiprocessing
import os
import signal
import zipfile
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.harness.artifacts import read_npz, save_npz
from pipeline.harness.cache import arrays_digest, is_current, publish, record_of
from pipeline.harness.parallel import Task, attempt

SPAWN = multiprocessing.get_context("spawn")  # OpenMP does not survive a fork
ARRAYS = {"a": np.arange(300.0), "b": np.arange(4)}


def publish_arrays(path, key="k", **more):
    publish(path, partial(save_npz, arrays={**ARRAYS, **more}), {"key": key, "split": 2})


@pytest.fixture
def unit(tmp_path):
    path = tmp_path / "unit.npz"
    publish_arrays(path)
    return path


def test_a_unit_is_one_file_with_its_record_and_equal_content_is_equal_bytes(unit, tmp_path):
    assert [path.name for path in tmp_path.iterdir()] == ["unit.npz"]
    record = record_of(unit)
    assert record is not None
    assert (record["key"], record["split"], record["arrays"]) == ("k", 2, arrays_digest(unit))
    for name, array in read_npz(unit).items():
        np.testing.assert_array_equal(array, ARRAYS[name])
    publish_arrays(tmp_path / "again.npz")
    with zipfile.ZipFile(unit) as archive:  # a date would make other bytes two seconds later
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert (tmp_path / "again.npz").read_bytes() == unit.read_bytes()


def test_the_digest_is_of_the_arrays_alone(unit, tmp_path):
    other = tmp_path / "other.npz"
    publish_arrays(other, key="another")
    assert arrays_digest(other) == arrays_digest(unit)
    publish_arrays(other, b=np.arange(1, 5))
    assert arrays_digest(other) != arrays_digest(unit)
    assert arrays_digest(other, ("a",)) == arrays_digest(unit, ("a",))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-40],
        lambda content: content[:400] + bytes([content[400] ^ 1]) + content[401:],
    ],
)
def test_a_damaged_unit_counts_as_absent(unit, damage):
    unit.write_bytes(damage(unit.read_bytes()))
    assert record_of(unit) is None
    assert not is_current(unit, "k")


def make_noting(notes, device, progress):
    """Leave a file whose name says which process made the unit."""
    (notes / str(os.getpid())).touch()
    return partial(save_npz, arrays=ARRAYS), {}


def task_of(folder, make):
    """A unit that `make` makes with the device and the progress."""
    settings = SimpleNamespace(paths=SimpleNamespace(data=folder), device="cpu", force=False)
    return Task("unit", settings, folder / "unit.npz", "k", make)


def made(folder, notes, barrier):
    barrier.wait(60)
    attempt(task_of(folder, partial(make_noting, notes)), wait=True)


def test_of_two_processes_one_makes_a_unit(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    barrier = SPAWN.Barrier(2)
    both = [SPAWN.Process(target=made, args=(tmp_path, notes, barrier)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert [one.exitcode for one in both] == [0, 0]
    assert len(list(notes.iterdir())) == 1
    assert is_current(tmp_path / "unit.npz", "k")


def hold(folder, held, end):
    def wait(device, progress):
        held.set()
        end.wait(60)

    attempt(task_of(folder, wait), wait=True)


def test_a_held_unit_is_busy_until_its_holder_is_killed(tmp_path):
    held, end = SPAWN.Event(), SPAWN.Event()
    holder = SPAWN.Process(target=hold, args=(tmp_path, held, end))
    holder.start()
    assert held.wait(60)
    task = task_of(tmp_path, partial(make_noting, tmp_path))
    assert attempt(task, wait=False).state == "busy"
    assert not task.path.exists()
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(60)
    assert attempt(task, wait=False).state != "busy"
    assert task.is_current()
