"""Whatever strikes a program, running it again gives every file byte for byte.

Files under their own names are whole at every moment. KILLS in the environment says how many kills
are tried (`make test-all` tries twenty). No moment is random: the kills lie evenly over a run's
changes of files. All but one of them are slow tests.
"""

import os
import signal
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.programs import PROGRAMS, Ended, Fault, fresh, start, written

KILLS = max(3, int(os.environ.get("KILLS", "3")))
FAST = {KILLS // 2}
BOTH = pytest.mark.parametrize("program", PROGRAMS)


class Whole(NamedTuple):
    """An undisturbed run: its files, and the number of its changes of files."""

    files: dict[str, bytes]
    changes: int


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The folder of all runs; it is one folder, because results record paths."""
    return tmp_path_factory.mktemp("faults") / "work"


@pytest.fixture(scope="module")
def undisturbed(work):
    """The undisturbed run of a program, made once."""

    @cache
    def run(program: str) -> Whole:
        ended = start(program, fresh(work))()
        assert (ended.code, ended.errors) == (0, "")
        return Whole(written(work), ended.changes)

    return run


def check_what_is_there(work: Path, whole: Whole) -> None:
    """Every file that is there is as an undisturbed run writes it, except temporary files."""
    for name, content in written(work).items():
        if "/." not in name:
            assert content == whole.files[name], name


def check_run_again(program: str, work: Path, whole: Whole) -> None:
    """The next run ends well and leaves what an undisturbed one leaves.

    A killed write may also leave a hidden temporary file. A write of the same file removes it an
    hour later at the earliest, because until then another process may still be writing it.
    """
    ended = start(program, work)()
    assert (ended.code, ended.errors) == (0, "")
    check_what_is_there(work, whole)
    visible = [{n for n in files if "/." not in n} for files in (written(work), whole.files)]
    assert visible[0] == visible[1]


def check_one_line(ended: Ended, reason: str, code: int = 1) -> None:
    assert ended.code == code, ended
    assert ended.errors.startswith("error: ") and ended.errors.count("\n") == 1, ended.errors
    assert reason in ended.errors


@pytest.mark.parametrize(
    "number", [pytest.param(k, marks=() if k in FAST else pytest.mark.slow) for k in range(KILLS)]
)
def test_a_kill_costs_no_result(undisturbed, work, number):
    program = list(PROGRAMS)[number % len(PROGRAMS)]
    whole = undisturbed(program)
    fault = Fault("kill", at=1 + number * whole.changes // KILLS)
    assert start(program, fresh(work), fault)().code == -signal.SIGKILL
    check_what_is_there(work, whole)
    check_run_again(program, work, whole)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_full_disk_is_one_line_and_costs_no_result(undisturbed, work, program, share):
    whole = undisturbed(program)
    fault = Fault("full", at=int(share * whole.changes))
    check_one_line(start(program, fresh(work), fault)(), "No space left on device")
    check_what_is_there(work, whole)
    check_run_again(program, work, whole)


@pytest.mark.slow
@BOTH
def test_a_read_only_folder_is_one_line(work, program):
    ended = start(program, fresh(work), Fault("read-only"))()
    code = 2 if program == "score" else 1  # --output is an option, which the line names
    check_one_line(ended, "Read-only file system", code)
    assert "out" in ended.errors
    assert not (work / "out").exists()


@pytest.mark.slow
@BOTH
def test_two_runs_at_once_end_with_the_result_of_one(undisturbed, work, program):
    whole = undisturbed(program)
    fresh(work)  # before both: it empties the folder
    ends = [start(program, work) for _ in range(2)]
    done, other = sorted((end() for end in ends), key=lambda ended: ended.code or 0)
    assert (done.code, done.errors) == (0, "")
    if program == "score":  # a folder of results has one run at a time; stages share their units
        check_one_line(other, "--wait", code=2)
    else:
        assert (other.code, other.errors) == (0, "")
    check_run_again(program, work, whole)
