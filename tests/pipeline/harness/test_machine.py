"""What this process may take of the machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pipeline.harness import machine
from pipeline.harness.command import CONF
from pipeline.harness.machine import free_memory


def test_the_memory_that_a_scheduler_gives_is_all_there_is(monkeypatch):
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    assert free_memory() > 1 << 26
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "5")
    assert free_memory() == 5 << 20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "0")  # --mem=0: all of the node's
    assert free_memory() > 1 << 26


@pytest.mark.parametrize(("cores", "megabytes"), [("4", 12), ("", 0), ("1", 3)])
def test_memory_per_core_counts_as_often_as_there_are_cores(monkeypatch, cores, megabytes):
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "3")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", cores)
    assert machine._limits_of_slurm() == ([megabytes << 20] if megabytes else [])


def files(folder, **contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n", encoding="ascii")


def test_what_is_free_in_all_groups_around_the_process_counts(tmp_path):
    own, root = tmp_path / "cgroup", tmp_path / "root"
    own.write_text("1:name=systemd:/old\n0::/user/job\n", encoding="ascii")
    files(tmp_path, memory__max=1)  # not one of the groups
    files(root / "old", memory__max=2)
    files(root / "user", memory__max=7000)
    files(root / "user" / "job", memory__max="max")
    assert machine._free_in_groups(root, own) == [7000]
    stat = "anon 100\ninactive_file 500"
    files(root / "user", memory__current=1700, memory__stat=stat)
    assert machine._free_in_groups(root, own) == [7000 - 1700 + 500], "cache is given back"
    files(root / "user", memory__current=9000)
    assert machine._free_in_groups(root, own) == [0]
    assert machine._free_in_groups(root, tmp_path / "absent") == []
    own.write_text("0::/user/jöb\n", encoding="utf-8")
    assert machine._free_in_groups(root, own) == [0]


def test_groups_of_version_1_count_too(tmp_path):
    own, root = tmp_path / "cgroup", tmp_path / "root"
    own.write_text("5:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/\n", encoding="ascii")
    files(root / "memory" / "docker", memory__limit_in_bytes=9000)
    assert machine._free_in_groups(root, own) == [9000]
    stat = "inactive_file 1\ntotal_inactive_file 300"
    used = {"memory__usage_in_bytes": 1300, "memory__stat": stat}
    files(root / "memory", memory__limit_in_bytes=4000, **used)  # as a container sees its own
    assert machine._free_in_groups(root, own) == [3000, 9000]


def test_the_smallest_limit_of_a_group_is_what_is_free(monkeypatch):
    monkeypatch.setattr(machine, "_free_in_groups", lambda: [9000, 8000])
    assert free_memory() == 8000


OF_A_CHILD = """
import json
from pipeline.harness.machine import now, run_notes
print(json.dumps(run_notes(now(), "cpu")))
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
    assert 0 < json.loads(told.stdout)["peak_megabytes"] < 500
