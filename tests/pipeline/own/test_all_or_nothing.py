"""Files appear together or not at all, and what a killed run left does not stay."""

from __future__ import annotations

import pytest

from pipeline.own.all_or_nothing import all_or_nothing


def test_files_appear_when_the_block_ends_well_and_leftovers_go(tmp_path):
    left = tmp_path / "out" / ".unfinished" / "c"  # of a run that was killed
    left.parent.mkdir(parents=True)
    left.write_text("half")
    with all_or_nothing(tmp_path / "out", last="a") as fresh:
        (fresh / "a").write_text("new")
        (fresh / "b").write_text("new")
        assert not list((tmp_path / "out").glob("[abc]"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b", "data"]


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), all_or_nothing(tmp_path, last="a") as fresh:
        (fresh / "a").write_text("new")
        raise ZeroDivisionError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "data"]
    assert (tmp_path / "a").read_text() == "old"
