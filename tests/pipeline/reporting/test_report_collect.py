from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from pipeline.harness.artifacts import CorruptFile, read_json
from pipeline.harness.receipts import two_standard_errors
from pipeline.reporting.collect import (
    MissingUnits,
    Runs,
    UnitResult,
    summarise,
)


def test_two_standard_errors_by_hand() -> None:
    # Deviations -1, 0, 1: std(ddof=1) = 1, so 2 / sqrt(3).
    assert two_standard_errors([3.0, 4.0, 5.0]) == pytest.approx(2 / math.sqrt(3))
    assert math.isnan(two_standard_errors([1.0]))
    assert math.isnan(two_standard_errors([1.0, math.inf]))


def test_summary_is_mean_and_spread_over_splits_and_mean_floor() -> None:
    units = [
        UnitResult("b", "temperature", k, {"brier": v}, {"brier": {"mean": v / 2, "q95": v}})
        for k, v in enumerate([0.1, 0.2, 0.6])
    ]
    row = summarise(units).iloc[0]
    assert row["mean"] == pytest.approx(0.3)
    assert row["two_se"] == pytest.approx(2 * statistics.stdev([0.1, 0.2, 0.6]) / math.sqrt(3))
    assert (row["floor_mean"], row["floor_q95"]) == (pytest.approx(0.15), pytest.approx(0.3))
    assert row["splits"] == 3


def test_reads_the_files_of_the_evaluate_stage(write_runs) -> None:
    runs = Runs(write_runs(methods=("temperature", "isotonic", "isotonic_raw")))
    assert runs.evaluated_methods("cifar10_repvgg", range(4)) == [
        "isotonic",
        "isotonic_raw",
        "temperature",
    ]
    units = runs.read_all("cifar10_repvgg", ["temperature"], range(4))
    assert [unit.split for unit in units] == [0, 1, 2, 3]
    assert units[0].ecdf["linear"].dtype == np.float64
    table = summarise(units).set_index("metric")
    assert table.loc["accuracy", "mean"] == pytest.approx(0.945, abs=0.01)
    assert table.loc["accuracy", "floor_mean"] == pytest.approx(0.945 / 4, abs=0.01)


def test_an_evaluation_with_its_own_name_lies_beside_the_default(write_runs) -> None:
    folder = write_runs(methods=("temperature",), suffix="-paper_batches", shift=1.0)
    assert Runs(folder).evaluated_methods("cifar10_repvgg", [0]) == []
    named = Runs(folder, "paper_batches").read(("cifar10_repvgg", "temperature", 0))
    assert named.metrics["accuracy"] == pytest.approx(2 * 0.945, abs=0.02)


def test_missing_units_are_named_in_one_line_with_the_command(write_runs) -> None:
    runs = Runs(write_runs(methods=("temperature",), splits=2))
    wanted = [("cifar10_repvgg", m, k) for m in ("temperature", "vector") for k in range(3)]
    with pytest.raises(MissingUnits) as caught:
        runs.require(wanted, command="python -m pipeline.evaluate suite=cifar")
    message = str(caught.value)
    assert "\n" not in message
    assert "4 of 6 results are missing" in message
    assert "cifar10_repvgg temperature split 2" in message
    assert "cifar10_repvgg vector split 0" in message
    assert message.endswith("make them with: python -m pipeline.evaluate suite=cifar")


WHOLE_BUT_WRONG = ["[]", "null", "{}", '{"metrics": {"u_cwe": NaN}}', "half"]


@pytest.mark.parametrize("name", ["metrics.json", "fit.json"])
@pytest.mark.parametrize("content", WHOLE_BUT_WRONG)
def test_a_damaged_or_foreign_record_counts_as_missing(write_runs, name, content) -> None:
    runs = Runs(write_runs(methods=("temperature",), splits=1))
    unit = ("cifar10_repvgg", "temperature", 0)
    path = runs.file(unit, "metrics.json").with_name(name)
    path.write_text(path.read_text()[:40] if content == "half" else content)
    assert not runs.has(unit)
    with pytest.raises(MissingUnits, match="1 of 1 results are missing"):
        runs.require([unit], command="")


def test_an_edited_metric_is_refused_in_one_line(write_runs) -> None:
    runs = Runs(write_runs(methods=("temperature",), splits=1))
    unit = ("cifar10_repvgg", "temperature", 0)
    path = runs.file(unit, "metrics.json")
    record = read_json(path)
    path.write_text(path.read_text().replace(str(record["metrics"]["u_cwe"]), "0.5"))
    assert read_json(path)["metrics"]["u_cwe"] == 0.5
    assert not runs.has(unit)
    with pytest.raises(CorruptFile, match=r"metrics.json: damaged, edited"):
        runs.read(unit)
