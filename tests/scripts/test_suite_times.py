"""The times of units are read from the lines that the stages write."""

import json

from utility_calibration.scripts.maintain import suite_times


def test_the_last_line_of_each_unit_counts_and_failures_do_not(tmp_path, capsys):
    log = tmp_path / "log"
    log.mkdir()
    lines = [
        ("logits/x", 1.0, ""),
        ("fits/x/vector/0", 9.0, ""),
        ("fits/x/vector/0", 2.0, ""),
        ("fits/x/vector/1", 4.0, ""),
        ("scores/x/vector/0", 5.0, "MemoryError"),
    ]
    text = "".join(
        json.dumps({"unit": unit, "core_seconds": seconds, "memory_mib": 7, "error": error}) + "\n"
        for unit, seconds, error in lines
    )
    (log / "host.jsonl").write_text(text)
    assert suite_times.main([str(log), "--output", str(tmp_path)]) == 0
    page = (tmp_path / "suite_times.md").read_text()
    assert "| fits | vector | 2 | 6.0 | 85.7% |" in page and "MemoryError" not in page
    assert "fits,x,vector,2,6" in (tmp_path / "suite_times.csv").read_text()
