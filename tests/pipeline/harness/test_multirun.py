"""--multirun: one job per combination; all failures are told, with their logs."""

import subprocess
import sys

import pytest

from pipeline.harness.command import CONF
from pipeline.harness.multirun import is_multirun
from tests.pipeline.conftest import write_example

LAUNCHERS = ["basic", "cores", "queue"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_failure_of_a_sweep_is_told_and_the_others_are_done(tmp_path, launcher):
    write_example(tmp_path / "tiny.npz")
    command = [
        sys.executable, "-m", "pipeline.fit", "--multirun", f"hydra/launcher={launcher}",
        "benchmark=file", "benchmark.name=tiny", f"benchmark.source.path={tmp_path / 'tiny.npz'}",
        f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / 'results'}",
        "calibrator=temperature", "splits.count=2", "split=0,1,2,3", "jobs=1",
        f"hydra.sweep.dir={tmp_path / 'multirun'}",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=CONF.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: 2 of 4 jobs failed; what is done stays, run it again\n"
    for split in (2, 3):
        assert f"failed: pipeline.fit split={split}: split={split}: expected" in done.stdout
    assert "sweep: 2 of 4 jobs done, 2 failed" in done.stdout
    assert "Traceback" not in done.stdout
    assert "Job completed successfully" not in done.stdout
    fits = sorted(tmp_path.glob("results/runs/tiny/temperature/split-*/fit.json"))
    assert [path.parent.name for path in fits] == ["split-0", "split-1"]
    logs = sorted((tmp_path / "multirun/logs").glob("*_log.out"))
    assert len(logs) == (4 if launcher == "queue" else 0)
    assert all(str(log) in done.stdout for log in logs[2:])
    assert [log for log in logs if "completed successfully" in log.read_text()] == logs[:2]


def test_what_only_prints_is_left_to_hydra():
    assert is_multirun(["--multirun", "split=0,1"])
    assert is_multirun(["-m"])
    assert not is_multirun(["split=0"])
    assert not is_multirun(["--multirun", "--cfg", "job"])
