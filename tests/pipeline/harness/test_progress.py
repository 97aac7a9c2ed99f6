"""Progress without a terminal: a line now and then."""

from __future__ import annotations

import pytest

from pipeline.harness import progress
from pipeline.harness.progress import Bar


def test_a_line_names_the_pieces_done_and_the_current_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", -1.0)
    with Bar("fit", 3) as bar:
        bar(0, 3, "starting")
        bar(1, 3, "first")
    assert capsys.readouterr().out == "fit: 0 of 3 (starting)\nfit: 1 of 3 (first)\n"
