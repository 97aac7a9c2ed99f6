"""Whatever strikes a program, running it again gives every file byte for byte.

Files under their own names are whole at every moment. KILLS in the environment says how many kills
are tried (`make test-all` tries twenty); no moment is drawn, they lie evenly over a run's changes
of files. All but three kills are slow by nature.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.programs import PROGRAMS, Ended, Fault, fresh, start, written

KILLS = max(3, int(os.environ.get("KILLS", "3")))
FAST = {0, KILLS // 3, 2 * KILLS // 3}
BOTH = pytest.mark.parametrize("program", PROGRAMS)


class Whole(NamedTuple):
    """An undisturbed run: its folder, kept aside; its files; the number of its changes of files."""

    kept: Path
    files: dict[str, bytes]
    changes: int


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The undisturbed run of each program, and the one folder that all runs take place in."""
    folder = tmp_path_factory.mktemp("faults")
    found = {}
    for program in PROGRAMS:
        ended = start(program, fresh(folder / "work"))()
        assert (ended.code, ended.errors) == (0, "")
        kept = folder / program
        shutil.copytree(folder / "work", kept)
        found[program] = Whole(kept, written(kept), ended.changes)
    return found


@pytest.fixture
def work(runs):
    """The folder of all runs: paths that are recorded are the same."""
    return next(iter(runs.values())).kept.parent / "work"


def after(work: Path, whole: Whole) -> Path:
    """`work` as an undisturbed run left it."""
    shutil.rmtree(work)
    return shutil.copytree(whole.kept, work)


def check_what_is_there(work: Path, whole: Whole) -> None:
    """Nothing differs from what an undisturbed run writes.

    Temporary files are aside.
    """
    for name, content in written(work).items():
        if "/." not in name:
            assert content == whole.files[name], name


def check_run_again(program: str, work: Path, whole: Whole) -> None:
    """The next run ends well and leaves what an undisturbed one leaves, and nothing else."""
    ended = start(program, work)()
    assert (ended.code, ended.errors) == (0, "")
    files = written(work)
    assert files.keys() == whole.files.keys()
    assert [name for name in files if files[name] != whole.files[name]] == []


def check_one_line(ended: Ended, reason: str) -> None:
    assert ended.code == 1, ended
    assert ended.errors.startswith("error: ") and ended.errors.count("\n") == 1, ended.errors
    assert reason in ended.errors or "failed; the others are done" in ended.errors


@pytest.mark.parametrize(
    "number",
    [pytest.param(k, marks=() if k in FAST else pytest.mark.slow) for k in range(KILLS)],
)
def test_a_kill_costs_no_result(runs, work, number):
    program = list(PROGRAMS)[number % len(PROGRAMS)]
    whole = runs[program]
    fault = Fault("kill", at=1 + number * whole.changes // KILLS)
    assert start(program, fresh(work), fault)().code == -signal.SIGKILL
    check_what_is_there(work, whole)
    check_run_again(program, work, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "length"), [("score.py", 1000), ("stages", 20_000)])
def test_a_kill_in_the_middle_of_a_file_costs_no_result(runs, work, program, length):
    assert start(program, fresh(work), Fault("cut", length))().code == -signal.SIGXFSZ
    check_what_is_there(work, runs[program])
    check_run_again(program, work, runs[program])


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("part", [0.3, 0.8])
def test_a_full_disk_is_one_line_and_costs_no_result(runs, work, program, part):
    fault = Fault("full", at=int(part * runs[program].changes))
    check_one_line(start(program, fresh(work), fault)(), "No space left on device")
    check_what_is_there(work, runs[program])
    check_run_again(program, work, runs[program])


@pytest.mark.slow
@pytest.mark.parametrize(("program", "length"), [("score.py", 1000), ("stages", 20_000)])
def test_a_file_that_cannot_be_written_to_its_end_costs_no_result(runs, work, program, length):
    check_one_line(start(program, fresh(work), Fault("short", length))(), "File too large")
    check_what_is_there(work, runs[program])
    check_run_again(program, work, runs[program])


@pytest.mark.slow
@BOTH
def test_a_read_only_folder_is_one_line(runs, work, program):
    ended = start(program, fresh(work), Fault("read-only"))()
    check_one_line(ended, "Read-only file system")
    assert "out" in ended.errors
    assert not (work / "out").exists()


@pytest.mark.slow
@BOTH
def test_results_in_a_read_only_folder_stay(runs, work, program):
    after(work, runs[program])
    check_one_line(start(program, work, Fault("read-only"))(), "Read-only file system")
    assert written(work) == runs[program].files


def flipped(content: bytes) -> bytes:
    """One bit: in the first array of an npz, in the middle of a text."""
    place = 120 if content.startswith(b"PK") else len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGE = {
    "empty": lambda content: b"",
    "half-written": lambda content: content[: len(content) // 2],
    "flipped": flipped,
    "another file": lambda content: b'{"x": [1, 2]}\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", [slice(0, None, 2), slice(1, None, 2)], ids=["even", "odd"])
def test_damaged_files_of_every_kind_are_made_again(runs, work, damage, which):
    """Every other file at once: each is damaged beside whole ones."""
    whole = runs["score.py"]
    after(work, whole)
    for name in list(whole.files)[which]:
        (work / name).write_bytes(DAMAGE[damage](whole.files[name]))
    check_run_again("score.py", work, whole)


@pytest.mark.slow
@BOTH
def test_all_units_half_written_are_made_again(runs, work, program):
    after(work, runs[program])
    for name, content in runs[program].files.items():
        if name.startswith("out/data"):
            (work / name).write_bytes(content[: len(content) // 2])
    check_run_again(program, work, runs[program])


@pytest.mark.slow
def test_damaged_scores_are_told_since_another_suite_may_have_rows_in_them(runs, work):
    whole = runs["stages"]
    after(work, whole)
    scores = work / "out/results/scores/digits.json"
    scores.write_bytes(scores.read_bytes()[:100])
    ended = start("stages", work)()
    check_one_line(ended, f"{scores.relative_to(work)}: not readable as JSON")
    assert "delete it and rerun" in ended.errors
    scores.unlink()
    check_run_again("stages", work, whole)


@pytest.mark.slow
@BOTH
def test_two_runs_at_once_end_with_the_result_of_one(runs, work, program):
    fresh(work)  # once: under a run that has begun it would remove the folder
    ends = [start(program, work) for _ in range(2)]
    assert [(ended.code, ended.errors) for ended in (end() for end in ends)] == [(0, ""), (0, "")]
    check_run_again(program, work, runs[program])


@pytest.mark.slow
@BOTH
def test_a_clock_that_goes_back_changes_nothing(runs, work, program):
    ended = start(program, fresh(work), Fault("clock"))()
    assert (ended.code, ended.errors) == (0, "")
    assert written(work) == runs[program].files


@pytest.mark.slow
@pytest.mark.parametrize("year", [1970, 2100])
def test_the_dates_of_files_do_not_matter(runs, work, year):
    whole = runs["stages"]
    seconds = (year - 1970) * 365 * 86_400
    for path in after(work, whole).rglob("*"):
        os.utime(path, (seconds, seconds))
    check_run_again("stages", work, whole)
    fitted = list((work / "out/data/fits").rglob("*.npz"))
    assert fitted and [path.stat().st_mtime for path in fitted] == [seconds] * len(
        fitted
    )  # not fitted again
