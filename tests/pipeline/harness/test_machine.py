"""What this process may take of the machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pipeline.harness import machine
from pipeline.harness.command import CONF
from pipeline.harness.machine import MissingDevice, core_count, device_name, free_memory


def files(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n", encoding="ascii")
    return folder


def test_the_smallest_limit_of_the_groups_around_the_process_is_what_is_free(tmp_path, monkeypatch):
    large = files(tmp_path / "large", memory__max="max")
    stat = "anon 100\ninactive_file 500"
    used = {"memory__current": 1700, "memory__stat": stat}
    small = files(tmp_path / "small", memory__max=7000, **used)
    monkeypatch.setattr(machine, "_control_groups", lambda: [large])
    assert free_memory() > 1 << 26
    monkeypatch.setattr(machine, "_control_groups", lambda: [large, small])
    assert free_memory() == 7000 - 1700 + 500  # the cache is given back
    files(small, memory__current=9000)
    assert free_memory() == 0


def test_the_groups_that_limit_memory_are_found(tmp_path):
    own, root = tmp_path / "cgroup", tmp_path / "root"
    own.write_text("1:name=systemd:/old\n0::/user/job\n", encoding="ascii")
    files(tmp_path, memory__max=1)  # outside
    files(root / "old", memory__max=2)
    limiting = [files(root / name, memory__max=7000) for name in ("user", "user/job")]
    assert machine._control_groups(root, own) == limiting
    assert machine._control_groups(root, tmp_path / "absent") == []


def test_cores_are_those_that_slurm_gives(monkeypatch):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    assert core_count() == 8
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    assert core_count() == 3


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_told_in_one_line(device, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert device_name("auto") == "cpu"
    with pytest.raises(MissingDevice, match=rf"^device={device}: torch \S+ sees no CUDA GPU"):
        device_name(device)


OF_A_CHILD = """
import json
from pipeline.harness.machine import run_notes
print(json.dumps(run_notes()))
"""
OF_A_LARGE_PARENT = """
import os, sys
large = bytearray(b"x") * 600_000_000
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
os.wait()
"""


def test_the_peak_of_memory_is_not_that_of_the_parent():
    command = [sys.executable, "-c", OF_A_LARGE_PARENT, OF_A_CHILD]
    told = subprocess.run(command, cwd=CONF.parent, capture_output=True, text=True, check=True)
    assert 0 < json.loads(told.stdout)["memory_mib"] < 500
