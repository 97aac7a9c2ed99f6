"""The scripts of those who work on this: a table of times, and ImageNet's archives."""

import json
from types import SimpleNamespace

from tests.refusals import refuses
from utility_calibration.scripts.maintain import prepare_imagenet, suite_times

# ---- Images that are missing or wrong ------------------------------------------------------------


def test_archives_that_are_missing_or_wrong_are_named(tmp_path):
    name = "ILSVRC2012_devkit_t12.tar.gz"
    with refuses(file=tmp_path, number=name):
        prepare_imagenet.main([str(tmp_path)])
    (tmp_path / name).write_bytes(b"another archive")
    with refuses(number="85e4524d4141ff4bb6055fb022142e60"):  # its MD5
        prepare_imagenet.main([str(tmp_path)])


def test_a_folder_is_checked_for_all_images(tmp_path, monkeypatch):
    class Images(list[int]):
        targets = (0, 1)

    datasets = SimpleNamespace(ImageNet=lambda folder, split: Images(range(2)))
    monkeypatch.setattr(prepare_imagenet, "require", lambda name: datasets)
    with refuses(number="50000", fix="delete"):
        prepare_imagenet.main([str(tmp_path)])


# ---- A table of times ----------------------------------------------------------------------------


def test_the_last_line_of_each_unit_counts_and_failures_do_not(tmp_path):
    lines = [
        ("logits/x", 1.0, ""),
        ("fits/x/vector/0", 9.0, ""),
        ("fits/x/vector/0", 2.0, ""),
        ("fits/x/vector/1", 4.0, ""),
        ("scores/x/vector/0", 5.0, "MemoryError"),
    ]
    keys = ("unit", "core_seconds", "error")
    text = "".join(json.dumps({"memory_mib": 7, **dict(zip(keys, line))}) + "\n" for line in lines)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "host.jsonl").write_text(text)
    assert suite_times.main([str(tmp_path / "log"), "--output", str(tmp_path)]) == 0
    assert "fits,x,vector,2,6" in (tmp_path / "suite_times.csv").read_text()
    assert "MemoryError" not in (tmp_path / "suite_times.md").read_text()
