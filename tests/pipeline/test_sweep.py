"""--multirun with Hydra's launchers, and pipeline.sweep: they fill the folders of a plain run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.harness.command import CONF
from tests.pipeline.conftest import files_below, tiny_overrides


@pytest.fixture
def call(evaluated_once, tmp_path):
    """`call(stage, *arguments)` in a folder of its own; the end of the program."""
    settings = tiny_overrides(evaluated_once / "tiny.npz", tmp_path)

    def run(stage, *arguments):
        folder = f"hydra.sweep.dir={tmp_path / 'multirun'}"
        command = [sys.executable, "-m", f"pipeline.{stage}", *arguments, *settings, folder]
        return subprocess.run(
            command, cwd=CONF.parent, capture_output=True, text=True, check=False, timeout=500
        )

    return run


@pytest.mark.slow
def test_jobs_on_two_cores_give_the_bytes_of_a_plain_run(call, evaluated_once, tmp_path):
    launcher = ("hydra/launcher=cores", "hydra.launcher.n_jobs=2")
    for stage in ("fit", "evaluate"):
        done = call(stage, "--multirun", "calibrator=temperature,vector", *launcher)
        assert done.returncode == 0, done.stdout + done.stderr
    for part in ("data/fits", "data/scores", "results"):
        assert files_below(tmp_path / part) == files_below(evaluated_once / part)


@pytest.mark.slow
def test_a_sweep_makes_a_suite(call, evaluated_once, tmp_path):
    suite = "suite.calibrators=[temperature,vector]"
    done = call("sweep", suite, "suite.dynamics=[]", "hydra/launcher=basic")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "results/report-file.html").is_file()
    assert files_below(tmp_path / "data/scores") == files_below(evaluated_once / "data/scores")
