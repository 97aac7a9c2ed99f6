"""paper_seeds: cells within 3 standard errors, counted per folder, mean and range of the others."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from utility_calibration.scripts.maintain import paper_seeds


def folder(path: Path, *z: float) -> str:
    rows = [("one", "temperature", "temperature_brier", str(k), True, v) for k, v in enumerate(z)]
    rows.append(("one", "temperature", "temperature", "0", False, 0.0))
    names = ["table", "method", "variant", "metric", "preset", "z"]
    (path / "tables").mkdir(parents=True)
    pd.DataFrame(rows, columns=names).to_csv(path / "tables/comparison.csv", index=False)
    return str(path)


def test_cells_are_counted(tmp_path: Path) -> None:
    folders = [
        folder(tmp_path / "0", 0.0, 4.0),
        folder(tmp_path / "1", -3.0, 2.0),
        folder(tmp_path / "2", -4.0, 9.0),
    ]
    assert paper_seeds.main([*folders, "--output", str(tmp_path)]) == 0
    text = (tmp_path / "paper_seeds.md").read_text()
    assert f"| {folders[0]} | 1 | 1 |" in text
    assert "| Mean of the others | 1.0 | 1.0 |" in text
    assert "| Range | 0 … 2 | 0 … 2 |" in text
