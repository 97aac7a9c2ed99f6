"""What this process may take of the machine."""

from __future__ import annotations

from pipeline.harness import machine
from pipeline.harness.machine import free_memory


def test_the_memory_that_a_scheduler_gives_is_all_there_is(monkeypatch):
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    assert free_memory() > 1 << 26
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "5")
    assert free_memory() == 5 << 20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "0")  # --mem=0: all of the node's
    assert free_memory() > 1 << 26


def test_limits_of_all_groups_around_the_process_count(tmp_path):
    own = tmp_path / "cgroup"
    own.write_text("1:name=systemd:/old\n0::/user/job\n", encoding="ascii")
    (tmp_path / "root" / "user" / "job").mkdir(parents=True)
    (tmp_path / "memory.max").write_text("1\n", encoding="ascii")  # not one of the groups
    (tmp_path / "root" / "user" / "memory.max").write_text("7000\n", encoding="ascii")
    (tmp_path / "root" / "user" / "job" / "memory.max").write_text("max\n", encoding="ascii")
    assert machine._limits_of_groups(tmp_path / "root", own) == [7000]
    assert machine._limits_of_groups(tmp_path / "root", tmp_path / "absent") == []
    own.write_text("0::/user/jöb\n", encoding="utf-8")
    assert machine._limits_of_groups(tmp_path / "root", own) == [7000]


def test_the_smallest_limit_of_a_group_is_what_is_free(monkeypatch):
    monkeypatch.setattr(machine, "_limits_of_groups", lambda: [9000, 8000])
    assert free_memory() == 8000
