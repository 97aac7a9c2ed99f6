"""Two processes on one folder end with the bytes of one, and each unit is made once."""

from __future__ import annotations

import json
import subprocess
import sys
from subprocess import PIPE

import pytest

from pipeline.harness.command import CONF
from tests.pipeline.conftest import files_below, tiny_overrides

pytestmark = pytest.mark.slow


def test_two_runs_at_once_make_each_unit_once(evaluated_once, tmp_path):
    settings = tiny_overrides(evaluated_once / "tiny.npz", tmp_path)
    chosen = "suite.calibrators=[temperature,vector]"
    for stage, units in (("fit", 1 + 6), ("evaluate", 1 + 6 + 6 + 2)):
        command = [sys.executable, "-m", f"pipeline.{stage}", *settings, chosen]
        both = [
            subprocess.Popen(command, cwd=CONF.parent, stdout=PIPE, stderr=PIPE, text=True)
            for _ in range(2)
        ]
        told = [one.communicate(timeout=300) for one in both]
        assert [one.returncode for one in both] == [0, 0], told
        (log,) = tmp_path.glob("data/log/runs-*.jsonl")
        made = [json.loads(line)["unit"] for line in log.read_text().splitlines()]
        assert len(made) == len(set(made)) == units
    for part in ("data/fits", "data/scores", "results"):
        assert files_below(tmp_path / part) == files_below(evaluated_once / part)
