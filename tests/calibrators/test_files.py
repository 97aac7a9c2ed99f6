"""Files are whole or not there, whatever happens while they are written."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calibrators.files import atomic_path

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def old(tmp_path) -> Path:
    path = tmp_path / "x.json"
    path.write_text("old")
    return path


def test_failed_write_keeps_the_old_file_and_leaves_nothing(old):
    with pytest.raises(KeyboardInterrupt), atomic_path(old) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


@contextmanager
def writing(names: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process amid `with <names> as file:`, which has written half of the file."""
    program = (
        "import time\nfrom calibrators.files import atomic_path\n"
        f"with {names} as file:\n"
        "    file.write_text('ne')\n    print('half', flush=True)\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        yield process
        process.kill()


def test_killed_write_keeps_the_old_file_and_the_next_one_cleans_up(old):
    with writing(f"atomic_path({str(old)!r})"), atomic_path(old) as ours:  # theirs: hands off
        assert len(list(old.parent.glob(".*"))) == 1
        ours.write_text("old")
    assert old.read_text() == "old"
    assert len(list(old.parent.glob(".*"))) == 1
    with atomic_path(old) as new:
        new.write_text("new")
    assert old.read_text() == "new"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("name", ["a**b.npz", "a*.npz", "[a].npz", "?.npz", "no suffix"])
def test_a_name_may_hold_what_patterns_are_made_of(name, tmp_path):
    with writing(f"atomic_path({str(tmp_path / name)!r})"):
        pass
    assert len(list(tmp_path.iterdir())) == 1
    with atomic_path(tmp_path / name) as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_writes_inside_another_leaves_nothing_when_it_is_killed(old):
    """A stage gives a calibrator's `save` a temporary name, beside which that makes its own."""
    with writing(f"atomic_path({str(old)!r}) as outer, atomic_path(outer)"):
        pass
    assert len(list(old.parent.iterdir())) == 2
    with atomic_path(old) as new:
        new.write_text("new")
    assert list(old.parent.iterdir()) == [old]


def test_the_writer_is_there_without_torch_or_numpy():
    """The stages' --help and `pipeline.status` are to do without what takes a second to load."""
    program = (
        "import sys, calibrators.files as _; print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_what_another_user_s_process_writes_is_left_alone(old, monkeypatch):
    with atomic_path(old) as theirs:  # by its name of a process that only root could signal
        another = theirs.with_name(theirs.name.replace(f"-{os.getpid()}.", "-1."))
        another.touch()
        theirs.touch()

    def refused(process, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    with atomic_path(old) as new:
        new.touch()
    assert another.exists()
