"""Files appear together or not at all, and what a killed run left does not stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.harness.all_or_nothing import all_or_nothing

ROOT = Path(__file__).resolve().parents[3]

UNTIL_KILLED = """
import sys, time
from pathlib import Path
from pipeline.harness.all_or_nothing import all_or_nothing
with all_or_nothing(Path(sys.argv[1]), last="b") as fresh:
    (fresh / "a").write_text("half")
    print("half", flush=True)
    time.sleep(60)
"""


def test_files_appear_when_the_block_ends_well(tmp_path):
    with all_or_nothing(tmp_path / "out", last="a") as fresh:
        (fresh / "a").write_text("new")
        (fresh / "b").write_text("new")
        assert not list((tmp_path / "out").glob("[ab]"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b"]


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), all_or_nothing(tmp_path, last="a") as fresh:
        (fresh / "a").write_text("new")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_killed_run_is_cleaned_up_by_the_next_and_a_living_one_is_left_alone(tmp_path):
    command = [sys.executable, "-c", UNTIL_KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"half\n"
        with all_or_nothing(tmp_path, last="a"):
            assert len(list(tmp_path.glob(".unfinished-*"))) == 2
        child.kill()
        child.wait()
        assert len(list(tmp_path.glob(".unfinished-*"))) == 1
        with all_or_nothing(tmp_path, last="a"):
            assert len(list(tmp_path.glob(".unfinished-*"))) == 1
    assert not list(tmp_path.iterdir())
