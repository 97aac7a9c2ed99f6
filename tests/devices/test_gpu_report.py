"""What `make test-gpu` measures runs without a GPU, too, so that it is not found broken there."""

from pathlib import Path

import pytest

from tests.devices import gpu


def test_every_row_of_the_report_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "ITEMS", 2)
    monkeypatch.setattr(gpu, "RESNET", "resnet18.a1_in1k")
    of_sources = gpu.rows_of_sources(tmp_path, device="cpu", workers=0)
    assert [row.split(" | ")[-2:] for row in of_sources] == [["0.0e+00", "yes |"]] * 3
