"""A run against the committed numbers: equal, equal as printed, different, and where."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipeline.harness.artifacts import write_record
from pipeline.harness.command import UnitsFailed, UsageError
from pipeline.verify import main, verify

NUMBERS = {"accuracy": 0.9123456789, "u_cwe": 0.0123456789}


def git(*arguments: str) -> None:
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *name, *arguments], check=True, capture_output=True)


def write(split: int, name: str = "metrics.json", **changes: float) -> None:
    path = Path(f"results/runs/digits/vector/split-{split}/{name}")
    write_record(path, {"hash": "0", "metrics": {**NUMBERS, **changes}})


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four units, committed in a repository that is the working folder."""
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    for split in (0, 1, 2, 10):
        write(split)
    git("add", ".")
    git("commit", "--quiet", "--message", "Results ß")


def statuses() -> dict[str, str]:
    return {one.unit: one.status for one in verify(Path("results"), "HEAD")}


def test_what_was_not_touched_is_equal_and_splits_stand_in_order(committed) -> None:
    assert list(statuses()) == [f"digits/vector/split-{k}" for k in (0, 1, 2, 10)]
    assert set(statuses().values()) == {"equal"}
    main([])


def test_every_fate_of_a_unit_has_its_word(committed) -> None:
    write(1, u_cwe=NUMBERS["u_cwe"] + 1e-12)
    write(2, u_cwe=0.5)
    Path("results/runs/digits/vector/split-10/metrics.json").unlink()
    write(3)
    assert list(statuses().values()) == ["equal", "equal as printed", "different", "new", "not run"]


def test_units_that_differ_are_told_with_metric_and_values(committed, capsys) -> None:
    write(2, u_cwe=0.5, accuracy=0.9)
    with pytest.raises(UnitsFailed, match="1 of 4 units are different"):
        main([])
    told = " ".join(capsys.readouterr().out.split())
    assert "different: digits/vector/split-2: u_cwe 0.0123457 → 0.5, accuracy 0.912346" in told


def test_a_metric_that_came_or_went_is_a_difference(committed) -> None:
    write(0, brier=0.1)
    assert statuses()["digits/vector/split-0"] == "different"


def test_edited_numbers_count_as_not_run(committed) -> None:
    path = Path("results/runs/digits/vector/split-0/metrics.json")
    path.write_text(path.read_text().replace("0.0123456789", "0.5"))
    assert statuses()["digits/vector/split-0"] == "not run"


def test_only_the_units_that_a_suite_lists_count(committed, capsys) -> None:
    write(2, u_cwe=0.5)
    main(["--suite", "cifar"])
    assert "digits" not in capsys.readouterr().out
    with pytest.raises(UnitsFailed, match="1 of 4 units"):
        main(["--suite", "digits"])


def test_units_of_a_suite_are_those_of_one_evaluation(committed) -> None:
    write(0, "metrics-paper_batches.json", u_cwe=0.5)
    git("add", ".")
    git("commit", "--quiet", "--message", "Another evaluation")
    write(0, "metrics-paper_batches.json", u_cwe=0.6)
    main(["--suite", "digits"])
    for options in (["--suite", "digits", "--evaluation", "paper_batches"], []):
        with pytest.raises(UnitsFailed, match=r"1 of \d units"):
            main(options)


def test_a_revision_that_there_is_not_is_told_in_one_line(committed) -> None:
    with pytest.raises(UsageError, match="git ls-tree"):
        main(["--against", "nowhere"])
