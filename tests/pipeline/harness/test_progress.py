"""Progress on a machine so slow that a line is due before anything is done."""

from __future__ import annotations

import pytest

from pipeline.harness import progress
from pipeline.harness.progress import Bar


def test_a_line_before_the_first_piece_is_done_names_no_remaining_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", -1.0)
    with Bar("fit", 3) as bar:
        bar(0, 3, "starting")
        bar(1, 3, "first")
    lines = capsys.readouterr()
    text = lines.out + lines.err
    assert "0/3" in text and "(starting)" in text
    assert "left" in next(line for line in text.splitlines() if "1/3" in line)
