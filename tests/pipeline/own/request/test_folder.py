"""Nothing of a person's is lost: only what the program wrote is replaced or removed."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.pipeline.conftest import write_example
from tests.refusals import fails, refuses
from tests.scripts.conftest import quick
from utility_calibration.pipeline.harness.artifacts import write_json
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.own.request.folder import (
    ALWAYS,
    LIST,
    check_replaceable,
    give_back,
    names_of,
    only_run,
    remove_others,
    take,
)

ONE = ("--methods", "uncalibrated", "--splits", "1")


@pytest.mark.parametrize(
    "name", ["table.csv", "scores/x.csv", "data/logits/x.npz", "data/fits/x/mine.txt"]
)
def test_a_file_of_the_persons_own_is_never_replaced(tmp_path, name):
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    path = write_example(tmp_path / "x.npz")
    with fails(UsageError, str(tmp_path / "out"), "another folder"):
        quick(path, tmp_path / "out", *ONE)
    assert mine.read_text() == "mine"
    assert [file for file in (tmp_path / "out").rglob("*") if file.is_file()] == [mine]


def test_other_files_stay_beside_the_results_and_all_results_are_on_the_list(tmp_path):
    out = tmp_path / "out"
    (out / "scores").mkdir(parents=True)
    for name in ("notes.txt", "scores/mine.csv"):
        (out / name).write_text("mine")
    path = write_example(tmp_path / "x.npz")
    assert quick(path, out, *ONE) == quick(path, out, *ONE)
    assert (out / "notes.txt").read_text() == (out / "scores/mine.csv").read_text() == "mine"
    for name in ("notes.txt", "scores/mine.csv"):
        (out / name).unlink()
    give_back(out)
    assert not out.exists(), sorted(out.rglob("*"))


def test_a_list_that_leads_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    write_json(tmp_path / "out" / LIST, ["../mine", str(tmp_path / "mine")])
    give_back(tmp_path / "out")
    assert (tmp_path / "mine").exists()


def test_a_failed_run_leaves_a_new_folder_to_others(tmp_path):
    out = tmp_path / "out"
    take(out, names_of("x"))
    (out / "report.html").write_text("made")
    (out / "other.txt").write_text("mine")
    give_back(out)
    assert [path.name for path in out.iterdir()] == ["other.txt"]
    assert "report.html" in ALWAYS


def test_named_files_are_replaced_only_if_the_programs_wrote_them(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, probabilities=np.eye(2))
    check_replaceable(path, "--output", ["probabilities"])
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    check_replaceable(tmp_path / "x.csv", "--output", ["a", "b"])
    with refuses("--output", fix="remove it to write it anew", number="other columns"):
        check_replaceable(tmp_path / "x.csv", "--output", ["a", "c"])
    with refuses("--save", fix="move it", number="another file"):
        check_replaceable(tmp_path / "x.npz", "--save")


def test_an_output_that_cannot_be_a_folder_is_told_with_the_option(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with fails(UsageError, "--output", str(tmp_path / "mine"), "another"):
        take(tmp_path / "mine", ["table.csv"])
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["data", "scores", "data/fits"])
def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path, name):
    (tmp_path / "mine").mkdir()
    link = tmp_path / "out" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "mine")
    with fails(UsageError, name):
        quick(write_example(tmp_path / "x.npz"), tmp_path / "out", *ONE)
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_second_run_in_the_folder_says_who_is_there_and_changes_nothing(tmp_path):
    path, out = write_example(tmp_path / "x.npz"), tmp_path / "out"
    with only_run(out, names_of("x"), wait=False):
        before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
        with fails(UsageError, f"process {os.getpid()}", "--wait"):
            quick(path, out, *ONE)
        assert before == {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    assert quick(path, out, *ONE)


def test_only_reports_and_figures_of_an_earlier_run_leave(tmp_path):
    take(tmp_path, ["report.html", "ecdf.png", "worst_*.png", "scores/a.csv", "streaming.md"])
    (tmp_path / "scores").mkdir()
    new = {"report.html", "worst_u_cwe.png"}
    old = {"ecdf.png", "worst_u_losses.png", "streaming.md"}
    kept = {"scores/a.csv", "worst_of_mine.png", "ecdf.svg", LIST}
    for name in (new | old | kept) - {LIST}:
        (tmp_path / name).touch()
    remove_others(tmp_path, [tmp_path / name for name in new])
    files = (path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.relative_to(tmp_path).as_posix() for path in files} == new | kept
