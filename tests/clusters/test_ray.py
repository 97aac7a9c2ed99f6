"""A sweep on Ray: a killed worker costs its job alone; results are those of a plain run."""

import os
import subprocess
import sys
from functools import partial

import pytest
from pipeline.harness.engines import run_jobs

from pipeline.harness.command import CONF

pytest.importorskip("ray", reason="Ray is not installed here (make test-ray)")

SMALL = {"include_dashboard": False, "num_cpus": 2}
RAY = {
    "_target_": "hydra_plugins.hydra_ray_launcher.ray_launcher.RayLauncher",
    "ray": {"init": SMALL, "remote": {"num_cpus": 1, "max_retries": 0}},
}
TINY = (
    "suite=digits", "suite.calibrators=[uncalibrated,temperature]", "splits.count=2",
    "evaluation.utilities=20", "evaluation.floor_repetitions=4", "jobs=1",
)  # fmt: skip


def test_a_killed_worker_costs_its_job_alone(tmp_path):
    good, bad, killed = partial(int, "7"), partial(int, "x"), partial(os._exit, 9)
    ended = {one.job: one.error for one in run_jobs([([killed, bad, good], RAY)], tmp_path)}
    assert ended[good] is None
    assert ended[bad] == "invalid literal for int() with base 10: 'x'"
    assert ended[killed].startswith("its worker was killed: ")


def test_what_no_node_can_run_is_refused(tmp_path):
    wide = RAY | {"ray": {"init": SMALL, "remote": {"num_cpus": 900}}}
    (ended,) = run_jobs([([partial(int, "7")], wide)], tmp_path)
    assert ended.error == "no node can run it: hydra.launcher.ray.remote.num_cpus=900, at most 2"


def test_a_sweep_gives_what_a_plain_run_gives(tmp_path):
    def run(stage, name, *more):
        paths = (f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / name}")
        command = [sys.executable, "-m", f"pipeline.{stage}", *TINY, *paths, *more]
        done = subprocess.run(command, cwd=CONF.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(name):
        found = [
            path for part in ("runs", "suites") for path in (tmp_path / name / part).rglob("*")
        ]
        return {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in found
            if path.is_file() and not path.name.startswith("run-")
        }

    for stage in ("fit", "evaluate", "report"):
        run(stage, "plain")
    init = [f"+hydra.launcher.ray.init.{key}={value}" for key, value in SMALL.items()]
    told = run("sweep", "ray", "hydra/launcher=ray_cluster", *init, "sweep.minutes_per_job=1")
    assert "sweep: 4 of 4 jobs done, 0 failed" in told
    assert files("ray") == files("plain")
