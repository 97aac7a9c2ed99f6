"""What this process may take of the machine."""

from __future__ import annotations

import pytest

from pipeline.harness.machine import MissingDevice, device_name, free_memory


def limit(folder, largest, used, files=0):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{largest}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 100\ninactive_file {files}\n")


def test_the_smallest_limit_of_the_groups_around_the_process_is_what_is_free(tmp_path):
    group = tmp_path / "user/job"
    limit(group, "max", 1700)
    assert free_memory(group) > 1 << 20
    limit(group.parent, 7000, 1700, files=500)
    assert free_memory(group) == 7000 - 1700 + 500  # the cache of files is given back
    limit(group, 2000, 9000)
    assert free_memory(group) == 0


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_one_line(device, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert device_name("auto") == "cpu"
    with pytest.raises(MissingDevice, match=rf"^device={device}: torch \S+ sees no CUDA GPU"):
        device_name(device)
