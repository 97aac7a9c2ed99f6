"""Damaged files; and those that once did harm, by name."""

from pathlib import Path

import pytest

from tests.fuzz.__main__ import CORPUS, fuzz_one, read

ROOT = Path(__file__).resolve().parents[2]
KEPT = sorted(CORPUS.iterdir())


def test_three_hundred_inputs_end_in_an_answer_or_one_line(tmp_path):
    problems = [fuzz_one(number, tmp_path) for number in range(300)]
    assert [problem for problem in problems if problem is not None] == []


@pytest.mark.parametrize("path", KEPT, ids=[path.name for path in KEPT])
def test_what_was_found_once_stays_mended(path, tmp_path):
    target = path.name.partition("-")[0]
    assert read(target, path.read_bytes(), tmp_path) is None
