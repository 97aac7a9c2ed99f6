"""Points in shards, for the tests of streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.own.streaming.streams import NAMES, Points
from utility_calibration.pipeline.own.reading import parts


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 100 rows."""
    monkeypatch.setattr(parts, "ROWS", 100)


@pytest.fixture
def points() -> Points:
    """Probabilities [900, 3] of an overconfident classifier, and labels."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=900)
    softer = 0.7 * p + 0.1
    labels = (softer.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1)
    return p, labels


@pytest.fixture
def shards(tmp_path: Path, points: Points) -> Path:
    """The points in three files, of which the second has its columns in another order."""
    folder, (p, labels) = tmp_path / "shards", points
    folder.mkdir()
    for number, rows in enumerate(np.split(np.arange(900), 3)):
        table = pd.DataFrame(p[rows], columns=[f"p_{name}" for name in NAMES])
        table["label"] = np.array(NAMES)[labels[rows]]
        table = table[table.columns[::-1]] if number == 1 else table
        table.to_parquet(folder / f"{number}.parquet", index=False)
    return folder
