"""pipeline.sweep with one of Hydra's launchers: it fills the folders of a plain run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.harness.command import CONF
from tests.pipeline.conftest import files_below, tiny_overrides


@pytest.mark.slow
def test_a_sweep_on_two_cores_gives_the_bytes_of_a_plain_run(evaluated_once, tmp_path):
    arguments = [
        *tiny_overrides(evaluated_once / "tiny.npz", tmp_path),
        f"hydra.sweep.dir={tmp_path / 'multirun'}", "suite.calibrators=[temperature,vector]",
        "suite.dynamics=[]", "hydra/launcher=cores", "hydra.launcher.n_jobs=2",
    ]  # fmt: skip
    command = [sys.executable, "-m", "pipeline.sweep", *arguments]
    done = subprocess.run(command, cwd=CONF.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("data/fits", "data/scores", "results/scores"):
        found = files_below(tmp_path / part)
        if part == "results/scores":
            del found["all.csv"]  # the report wrote it, which the plain run leaves out
        assert found == files_below(evaluated_once / part)
    assert (tmp_path / "results/report-file.html").is_file()
