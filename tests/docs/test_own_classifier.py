"""The commands that the pages give for a person's own file run, in the order of the page."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import README, ROOT, blocks, name_of

YOUR_DATA = ROOT / "docs" / "your-data.md"
FEWER = ["--splits", "2", "--methods", "uncalibrated", "temperature", "logit_shift"]
"""To spare time: the page's commands use ten splits and all methods."""
SCRIPTS = ("scripts/score.py", "scripts/apply.py")


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, YOUR_DATA], ids=name_of)
def test_the_commands_for_a_file_of_ones_own_run(page: Path, tmp_path: Path) -> None:
    ran = 0
    for block in blocks(page):
        makes_a_file = "savez" in block.text or "write_text" in block.text
        if block.language == "python" and makes_a_file:
            with contextlib.chdir(tmp_path):
                exec(compile(block.text, str(page), "exec"), {"__name__": page.stem})
        for line in block.text.splitlines() if block.language == "bash" else ():
            words = shlex.split(line, comments=True)
            if words[:1] == ["python"] and words[1] in SCRIPTS:
                command = [sys.executable, str(ROOT / words[1]), *words[2:]]
                command += FEWER if "score" in words[1] else []
                done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
                assert done.returncode == 0, done.stdout + done.stderr
                ran += 1
    assert ran >= 3
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "calibrated.npz").is_file()
