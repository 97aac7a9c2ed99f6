"""--multirun on Slurm and on Ray: results are those of a plain run, and a lost job stops no other.

`make test-slurm` starts a cluster of one node for its tests and stops it again. Sweeps are on a
benchmark of 200 points.
"""

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from tests.pipeline.conftest import files_below, tiny_overrides, write_example
from utility_calibration.pipeline.harness.parameters import CONF

NEEDS_SLURM = pytest.mark.skipif(
    not os.environ.get("SLURM_CONF") or shutil.which("sbatch") is None,
    reason="Slurm is not set up here (make test-slurm starts one)",
)
NEEDS_RAY = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed here (make test-ray installs it)"
)
SLURM = (
    "hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=1",
    "hydra.launcher.max_num_timeout=0",
)  # fmt: skip
RAY = (
    "hydra/launcher=ray_cluster",
    "+hydra.launcher.ray.init.include_dashboard=false",
    "+hydra.launcher.ray.init.num_cpus=2",
)
WAITING = """
import os, pathlib, time
from utility_calibration.calibrators import Uncalibrated

class Waiting(Uncalibrated):
    def _fit(self, logits, labels, weights=None):
        folder = pathlib.Path(os.environ["WAIT_IN"])
        (folder / f"waits-{os.environ['SLURM_ARRAY_TASK_ID']}").write_text(str(os.getpid()))
        while not (folder / "go").exists():
            time.sleep(0.1)
        super()._fit(logits, labels)
"""
PAIRS = "calibrator=temperature,vector"


class Sweep:
    """Command lines on one folder of data and results."""

    def __init__(self, folder, name):
        self.folder = folder / name
        self.settings = tiny_overrides(folder / "tiny.npz", self.folder)

    def command(self, stage, *more):
        sweeps = f"hydra.sweep.dir={self.folder / 'multirun'}"
        flags = [word for word in more if word.startswith("--")]  # Hydra reads them first
        others = [word for word in more if not word.startswith("--")]
        program = [sys.executable, "-m", "utility_calibration", stage]
        return [*program, *flags, *self.settings, sweeps, *others]

    def run(self, stage, *more):
        return subprocess.run(
            self.command(stage, *more),
            cwd=CONF.parent, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip

    def files(self):
        """Fits, scores and results by name, without the record of what the last job asked for."""
        folders = ("data/fits", "data/scores", "results")
        return {
            f"{folder}/{name}": content
            for folder in folders
            for name, content in files_below(self.folder / folder).items()
            if not name.endswith("written.json")
        }


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The same units without a cluster."""
    folder = tmp_path_factory.mktemp("sweep")
    write_example(folder / "tiny.npz")
    sweep = Sweep(folder, "plain")
    for stage in ("logits", "fit", "evaluate"):
        done = sweep.run(stage, "suite.calibrators=[temperature,vector]")
        assert done.returncode == 0, done.stderr
    return sweep


def wait_until(what, seconds):
    """Return once `what()` holds; fail where that takes too long."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        time.sleep(0.05)


def slurm(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "launcher"),
    [pytest.param("slurm", SLURM, marks=NEEDS_SLURM), pytest.param("ray", RAY, marks=NEEDS_RAY)],
)
def test_a_failed_job_costs_itself_and_the_same_command_makes_the_rest(plain, name, launcher):
    sweep = Sweep(plain.folder.parent, name)
    assert sweep.run("logits").returncode == 0
    failed = sweep.run("fit", "--multirun", PAIRS, "split=0,7", *launcher)  # there are three splits
    assert failed.returncode != 0
    assert {file.rpartition("/")[2] for file in sweep.files()} == {"0.npz"}
    for stage in ("fit", "evaluate"):
        done = sweep.run(stage, "--multirun", PAIRS, *launcher)
        assert done.returncode == 0, done.stdout + done.stderr
    assert sweep.files() == plain.files()


@NEEDS_SLURM
def test_lost_jobs_cost_themselves_and_the_same_command_makes_the_rest(plain, monkeypatch):
    """Of four jobs one is killed, one cancelled, one preempted and queued again; the last one ends.

    Slurm signals the third because its time limit is shortened. submitit compares with the limit
    that it asked for, takes the signal for a preemption, and queues the job again.
    """
    sweep = Sweep(plain.folder.parent, "lost")
    sweep.folder.mkdir()
    (sweep.folder / "waiting_calibrator.py").write_text(WAITING)
    monkeypatch.setenv("PYTHONPATH", str(sweep.folder))
    monkeypatch.setenv("WAIT_IN", str(sweep.folder))
    assert sweep.run("logits").returncode == 0  # before the jobs, which would wait for one of them
    arguments = (
        "fit", "--multirun", "calibrator=uncalibrated", "split=0,1,2,3", "splits.count=4",
        "calibrator._target_=waiting_calibrator.Waiting", *SLURM,
        "hydra.launcher.timeout_min=30", "hydra.launcher.signal_delay_s=5",
    )  # fmt: skip
    running = subprocess.Popen(sweep.command(*arguments), cwd=CONF.parent)
    array = _array_of_this_sweep()
    waits = {number: sweep.folder / f"waits-{number}" for number in range(4)}
    wait_until(lambda: waits[0].exists() and waits[0].read_text(), seconds=300)
    os.kill(int(waits[0].read_text()), 9)
    wait_until(waits[1].exists, seconds=300)
    slurm("scancel", f"{array}_1")
    wait_until(waits[2].exists, seconds=300)
    slurm("scontrol", "update", f"JobId={array}_2", "TimeLimit=1")
    _wait_for_another_start(f"{array}_2")
    (sweep.folder / "go").touch()
    assert running.wait(timeout=900) != 0  # with the first lost job; the others run on
    wait_until(lambda: _made(sweep) == {"2.npz", "3.npz"}, seconds=400)
    again = sweep.run(*arguments)
    assert again.returncode == 0, again.stdout + again.stderr
    assert _made(sweep) == {f"{split}.npz" for split in range(4)}


def _made(sweep):
    return {name.rpartition("/")[2] for name in sweep.files()}


def _array_of_this_sweep():
    """The number of the job array, once it is in the queue."""
    queue = ("squeue", "--noheader", "--format=%F")
    wait_until(lambda: slurm(*queue).strip(), seconds=300)
    return slurm(*queue).split()[-1]


def _wait_for_another_start(job):
    """Slurm looks at time limits every half a minute, and lets a job wait two minutes."""
    show = ("scontrol", "show", "job", job)
    wait_until(lambda: "Restarts=1" in slurm(*show), seconds=300)
