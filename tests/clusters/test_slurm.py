"""A sweep on Slurm whose jobs are killed, cancelled, cut off and refused, then run to completion.

`make test-slurm` starts a cluster of one node for it and stops it again.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from pipeline.harness.engines import run_jobs
from pipeline.harness.locks import claimed

from pipeline.harness.command import CONF
from pipeline.harness.units import Request, composed, sweep_settings

if not os.environ.get("SLURM_CONF") or shutil.which("sbatch") is None:
    pytest.skip("no Slurm: SLURM_CONF is not set (make test-slurm)", allow_module_level=True)

TINY = (
    "suite=digits", "suite.calibrators=[uncalibrated,temperature]", "splits.count=2",
    "evaluation.utilities=20", "evaluation.floor_repetitions=4", "jobs=1",
)  # fmt: skip
SLURM = (
    "hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=1",
    "sweep.minutes_per_job=1", "sweep.seconds_of_unknown=60",
)  # fmt: skip


class Sweep:
    """Command lines on one folder of results."""

    def __init__(self, folder, name):
        self.results, self.folder = folder / name, folder
        self.paths = (f"paths.data={folder / 'data'}", f"paths.results={self.results}")

    def arguments(self, stage, *more):
        sweeps = f"hydra.sweep.dir={self.folder / 'multirun'}"
        return [sys.executable, "-m", f"pipeline.{stage}", *TINY, *self.paths, sweeps, *more]

    def run(self, stage, *more):
        command = self.arguments(stage, *more)
        return subprocess.run(
            command, cwd=CONF.parent, capture_output=True, text=True, check=False, timeout=900
        )

    def units(self):
        config = [*TINY, *self.paths]
        request = Request("digits", ("digits",), ("uncalibrated", "temperature"), (0, 1),
                          tuple(config[2:]), False)  # fmt: skip
        assert composed(config).suite.name == "digits"
        return request.units()

    def files(self):
        """What is committed of it, by name; how runs went differs."""
        found = [path for part in ("runs", "suites") for path in (self.results / part).rglob("*")]
        return {
            str(path.relative_to(self.results)): path.read_bytes()
            for path in found
            if path.is_file() and not path.name.startswith("run-")
        }


def slurm(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def partition(setting, back):
    slurm("scontrol", "update", "PartitionName=debug", setting)
    try:
        yield
    finally:
        slurm("scontrol", "update", "PartitionName=debug", back)


def wait_for(what, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(1)
    raise AssertionError(f"waited {seconds} s in vain")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The same units without a cluster, and the logits."""
    sweep = Sweep(tmp_path_factory.mktemp("sweep"), "plain")
    for stage in ("fit", "evaluate", "report"):
        done = sweep.run(stage)
        assert done.returncode == 0, done.stderr
    return sweep


def test_lost_jobs_are_told_and_the_next_sweep_completes_byte_for_byte(plain):
    sweep = Sweep(plain.folder, "slurm")
    output = plain.folder / "lost.txt"
    one_minute = ("hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=5")
    command = sweep.arguments("sweep", *SLURM, *one_minute, "hydra.launcher.max_num_timeout=0")
    with ExitStack() as held:
        running, array = started(command, output, sweep.units()[1:], held)
        for number in range(3):  # on a slow machine a minute is short; the last job keeps it
            slurm("scontrol", "update", f"JobId={array}_{number}", "TimeLimit=30")
        pid = wait_for(lambda: step_of(f"{array}_1"))
        os.kill(pid, 9)
        wait_for(lambda: step_of(f"{array}_2"))
        slurm("scancel", f"{array}_2")
        assert running.wait(timeout=900) == 1
    told = output.read_text()
    logs = plain.folder / "multirun" / "logs"
    line = "failed: digits {}: {}; log: {}/{}_{}_0_log.out"
    killed = "killed, perhaps out of memory"
    assert line.format("uncalibrated split 1", killed, logs, array, 1) in told
    assert line.format("temperature split 0", "cancelled", logs, array, 2) in told
    assert "failed: digits temperature split 1: past its time limit" in told
    assert "sweep: 1 of 4 jobs done, 3 failed" in told
    assert "Traceback" not in told

    again = sweep.run("sweep", *SLURM)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "sweep: 3 of 3 jobs done, 0 failed" in again.stdout
    assert sweep.files() == plain.files()


def test_a_job_past_its_time_limit_is_queued_again_and_goes_on(plain):
    sweep = Sweep(plain.folder, "again")
    output = plain.folder / "again.txt"
    (unit, *_) = sweep.units()
    one = (f"calibrator={unit.calibrator}", f"split={unit.split}", "sweep.report=false")
    limit = ("hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=5")
    command = sweep.arguments("sweep", *SLURM, *one, *limit)
    with ExitStack() as held:
        running, array = started(command, output, [unit], held)
        wait_for(lambda: "Restarts=1" in slurm("scontrol", "show", "job", array), seconds=600)
        slurm("scontrol", "update", f"JobId={array}", "TimeLimit=30")  # enough, once it goes on
    assert running.wait(timeout=900) == 0
    assert "sweep: 1 of 1 job done, 0 failed" in output.read_text()
    found = {name: data for name, data in sweep.files().items() if name.endswith(".npz")}
    assert len(found) == 2 and found.items() <= plain.files().items()


def test_each_group_of_jobs_gets_its_own_settings(tmp_path):
    small, large = (
        (partial(int, text), sweep_settings([*SLURM, f"hydra.launcher.mem_gb={text}"])[0])
        for text in ("1", "2")
    )
    ended = list(run_jobs([([job], launcher) for job, launcher in (small, large)], tmp_path))
    assert {one.job: (one.error, memory_of(one.log)) for one in ended} == {
        small[0]: (None, "1G"),
        large[0]: (None, "2G"),
    }


def memory_of(log):
    """What the job behind a log asked for."""
    told = slurm("scontrol", "show", "job", log.name.partition("_")[0])
    return re.search(r"MinMemoryNode=(\w+)", told)[1]


def test_what_no_node_can_run_is_refused_at_once(plain):
    sweep = Sweep(plain.folder, "refused")
    done = sweep.run("sweep", *SLURM, "hydra.launcher.mem_gb=900")
    assert done.returncode == 1
    assert "failed, 4 jobs: refused: " in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_what_would_wait_for_ever_is_cancelled(plain):
    sweep = Sweep(plain.folder, "waiting")
    with partition("MaxTime=1", "MaxTime=INFINITE"):
        done = sweep.run("sweep", *SLURM, "hydra.launcher.timeout_min=30")
    assert done.returncode == 1
    assert "failed, 4 jobs: cancelled" in done.stdout or "refused" in done.stdout


def test_multirun_starts_its_jobs_on_slurm_and_tells_each_that_failed(plain):
    sweep = Sweep(plain.folder, "multirun")
    asked = ("calibrator=uncalibrated,temperature", "split=0,7")  # there are two splits
    done = sweep.run("fit", "--multirun", *SLURM[:3], *asked)
    assert done.returncode == 1
    assert done.stdout.count("done: pipeline.fit") == 2
    line = "failed: pipeline.fit calibrator=uncalibrated split=7: split=7: expected a number from 0"
    assert line in done.stdout
    assert f"log: {plain.folder / 'multirun' / 'logs'}" in done.stdout
    assert "error: 2 of 4 jobs failed" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    found = {name: data for name, data in sweep.files().items() if name.endswith("parameters.npz")}
    assert len(found) == 2 and found.items() <= plain.files().items()


def started(command, output, units, held):
    """A sweep's process and job array; from its first second on, another has `units`."""
    with output.open("w") as file, partition("State=DOWN", "State=UP"):
        running = subprocess.Popen(command, cwd=CONF.parent, stdout=file, stderr=file)
        array = wait_for(lambda: job_array(output))
        for unit in units:
            held.enter_context(claimed(unit.files.fit.running, str(unit), "another"))
        for unit in units:
            unit.files.fit.running.write_text('{"host": "elsewhere"}')
    return running, array


def job_array(output):
    """The number of the job array, once the sweep says that it was handed over."""
    for line in output.read_text().splitlines():
        if line.startswith("slurm: ") and ", from " in line:
            return line.split()[4].rstrip(";").partition("_")[0]
    return None


def step_of(job):
    """The process of the job's step, once it waits for the unit."""
    found = slurm("squeue", "--noheader", "--array", "--format=%i %A %T").split("\n")
    raw = [row.split()[1] for row in found if row.split()[:1] == [job] and "RUNNING" in row]
    if not raw:
        return None
    pids = subprocess.run(
        ["scontrol", "listpids", raw[0]], capture_output=True, text=True, check=False
    ).stdout
    rows = [row.split() for row in pids.splitlines()[1:]]
    return max((int(row[0]) for row in rows if row[2] == "0"), default=None)
