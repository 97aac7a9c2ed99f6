from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from pipeline.harness.artifacts import CorruptFile
from pipeline.reporting.collect import Scores, summarise
from pipeline.scoring.files import ScoreFiles
from tests.pipeline.reporting.conftest import facts_of, scored, write


def scores_of(tmp_path, *splits) -> Scores:
    return write(ScoreFiles(tmp_path, "b"), {"isotonic": list(splits)}, facts_of("b", 3))


def test_summary_is_mean_and_spread_over_splits(tmp_path) -> None:
    values = [0.1, 0.2, 0.6]
    row = summarise(
        scores_of(tmp_path, *(scored(k, {"brier": v}) for k, v in enumerate(values)))
    ).iloc[0]
    assert row["mean"] == pytest.approx(0.3)
    assert row["two_se"] == pytest.approx(2 * statistics.stdev(values) / math.sqrt(3))
    assert row["interval"] == "corrected"
    assert row["half_width"] == row["half_width_corrected"] > row["two_se"]
    assert (row["splits"], row["test_points"], row["test_share"]) == (3, 3000, 0.3)
    assert row["values"] == (0.1, 0.2, 0.6)


def test_floors_bootstrap_and_certificates_are_read(tmp_path) -> None:
    bounds = {"u_topk": {"estimate": 0.1, "lower": 0.0, "upper": 0.2, "upper_finite": 0.9}}
    bounds["all"] = bounds["u_topk"] | {"upper": 0.4}
    arrays = {"floor_u_topk": np.full(19, 0.2), "bootstrap_u_topk": np.array([0.2, 0.4])}
    split = scored(0, {"u_topk": 0.3, "nll": 1.0}, arrays=arrays, certificates=bounds)
    scores = scores_of(tmp_path, split)
    rows = summarise(scores).set_index("metric")
    assert list(rows.index) == ["u_topk", "nll"]  # the certificate of all classes is no metric
    assert rows.loc["u_topk", "p_value"] == 0.05 and rows.loc["u_topk", "beyond_floor"]
    assert rows.loc["u_topk", "interval"] == "bootstrap"
    assert rows.loc["u_topk", "half_width"] == pytest.approx(1.96 * 0.2 / math.sqrt(2), rel=1e-4)
    assert rows.loc["u_topk", "upper"] == 0.2 and np.isnan(rows.loc["nll", "upper"])
    assert set(rows["upper_all"]) == {0.4}


def test_a_damaged_file_is_named_in_one_line(tmp_path) -> None:
    scores_of(tmp_path, scored(0, {"nll": 1.0}))
    files = ScoreFiles(tmp_path, "b")
    files.rows.write_text("calibrator,split\nisotonic,0\n")
    with pytest.raises(CorruptFile, match=r"b\.csv: cannot be read [^\n]*evaluate again$"):
        Scores.read(files)
    assert Scores.read(ScoreFiles(tmp_path, "other")) is None
