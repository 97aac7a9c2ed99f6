"""--multirun on Ray: a job that fails stops no other; results are those of a plain run."""

import subprocess
import sys

import pytest

from pipeline.harness.command import CONF
from tests.pipeline.conftest import files_below, tiny_overrides, write_example

pytest.importorskip("ray", reason="Ray is not installed here (make test-ray)")

LAUNCHER = (
    "hydra/launcher=ray_cluster",
    "+hydra.launcher.ray.init.include_dashboard=false",
    "+hydra.launcher.ray.init.num_cpus=2",
)
PAIRS = "calibrator=temperature,vector"


@pytest.fixture
def call(tmp_path):
    """`call(folder, stage, *arguments)`: the end of a program on a benchmark of 200 points."""
    source = write_example(tmp_path / "tiny.npz")

    def run(name, stage, *arguments):
        settings = tiny_overrides(source, tmp_path / name)
        sweeps = f"hydra.sweep.dir={tmp_path / name / 'multirun'}"
        flags = [one for one in arguments if one.startswith("--")]  # Hydra reads them first
        others = [one for one in arguments if not one.startswith("--")]
        program = [sys.executable, "-m", f"pipeline.{stage}"]
        return subprocess.run(
            [*program, *flags, *settings, sweeps, *others],
            cwd=CONF.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    return run


def test_a_failed_job_costs_itself_and_the_same_command_makes_the_rest(call, tmp_path):
    for stage in ("fit", "evaluate"):
        done = call("plain", stage, "suite.calibrators=[temperature,vector]")
        assert done.returncode == 0, done.stdout + done.stderr
    failed = call("ray", "fit", "--multirun", PAIRS, "split=0,7", *LAUNCHER)  # there are three
    assert failed.returncode != 0
    made = {path.name for path in (tmp_path / "ray/data/fits").rglob("*.npz")}
    assert made == {"0.npz"}
    for stage in ("fit", "evaluate"):
        done = call("ray", stage, "--multirun", PAIRS, *LAUNCHER)
        assert done.returncode == 0, done.stdout + done.stderr
    for part in ("data/fits", "data/scores", "results"):
        assert files_below(tmp_path / "ray" / part) == files_below(tmp_path / "plain" / part)
