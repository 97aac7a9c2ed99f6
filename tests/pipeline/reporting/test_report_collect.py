from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from metrics import CalibrationInterval
from pipeline.harness.artifacts import CorruptFile, read_json, write_record
from pipeline.reporting.collect import (
    MissingUnits,
    Runs,
    UnitResult,
    certificates,
    summarise,
)


def test_summary_is_mean_and_spread_over_splits() -> None:
    units = [UnitResult("b", "isotonic", k, {"brier": v}) for k, v in enumerate([0.1, 0.2, 0.6])]
    row = summarise(units).iloc[0]
    assert row["mean"] == pytest.approx(0.3)
    assert row["two_se"] == pytest.approx(2 * statistics.stdev([0.1, 0.2, 0.6]) / math.sqrt(3))
    assert row["interval"] == "corrected"
    assert row["half_width"] == row["half_width_corrected"] > row["two_se"]
    assert row["splits"] == 3
    assert row["values"] == (0.1, 0.2, 0.6)
    assert row["beyond_floor"] is None


def test_the_floor_is_that_of_the_mean_over_splits() -> None:
    """Repetition by repetition: opposite noise in two splits cancels, equal noise does not."""
    noise = np.linspace(-1, 1, 99)
    equal, opposite = (
        [
            UnitResult("b", "m", k, {"u_topk": 1.5}, ecdf={"floor_u_topk": 2 + sign * noise})
            for k, sign in enumerate(signs)
        ]
        for signs in ((1, 1), (1, -1))
    )
    assert summarise(equal).loc[0, "floor_q95"] == pytest.approx(2.9)
    assert summarise(opposite).loc[0, "floor_q95"] == pytest.approx(2)
    assert summarise(equal).loc[0, "p_value"] == pytest.approx((1 + 75) / 100, abs=0.011)
    beyond = [UnitResult("b", "m", 0, {"u_topk": 3.1}, ecdf={"floor_u_topk": 2 + noise})]
    assert summarise(beyond).loc[0, "p_value"] == 0.01
    assert summarise(beyond).loc[0, "beyond_floor"]


def test_bootstrap_draws_make_the_interval() -> None:
    moved = np.random.default_rng(0).normal(size=(2, 200))
    units = [
        UnitResult("b", "m", k, {"nll": 1.0}, ecdf={"bootstrap_nll": moved[k]}, zero_likelihood=k)
        for k in range(2)
    ]
    row = summarise(units).iloc[0]
    assert row["interval"] == "bootstrap"
    assert row["half_width"] == pytest.approx(1.96 * moved.mean(axis=0).std(ddof=1), rel=1e-4)
    assert row["zero_likelihood"] == 0.5


def test_certificates_are_means_over_splits() -> None:
    bounds = [(0.1, 0.0, upper, 0.9) for upper in (0.2, 0.4)]
    named = [{"all": CalibrationInterval(*one)._asdict()} for one in bounds]
    units = [UnitResult("b", "m", k, {}, certificates=one) for k, one in enumerate(named)]
    assert certificates(units).loc[0, "upper"] == pytest.approx(0.3)
    assert certificates([UnitResult("b", "m", 0, {})]).empty


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
    assert table.loc["u_topk", "floor_mean"] == pytest.approx(0.01, rel=0.2)
    assert np.isnan(table.loc["accuracy", "floor_mean"])


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
    path = runs.files(unit).scores.json.with_name(name)
    path.write_text(path.read_text()[:40] if content == "half" else content)
    assert not runs.has(unit)
    with pytest.raises(MissingUnits, match="1 of 1 results are missing"):
        runs.require([unit], command="")


@pytest.mark.parametrize("key", ["parameters_sha256", "ecdf_sha256", "certificates", "n_test"])
def test_a_record_of_another_version_is_named_with_the_key_it_lacks(write_runs, key) -> None:
    runs = Runs(write_runs(methods=("temperature",), splits=1))
    unit = ("cifar10_repvgg", "temperature", 0)
    path = runs.files(unit).scores.json
    record = read_json(path)
    del record[key]
    write_record(path, record)
    said = rf"metrics\.json: has no `{key}`, as of another version; run pipeline\.evaluate again"
    for ask in (runs.has, runs.record, runs.read):
        with pytest.raises(CorruptFile, match=said):
            ask(unit)


def test_an_edited_metric_is_refused_in_one_line(write_runs) -> None:
    runs = Runs(write_runs(methods=("temperature",), splits=1))
    unit = ("cifar10_repvgg", "temperature", 0)
    path = runs.files(unit).scores.json
    record = read_json(path)
    path.write_text(path.read_text().replace(str(record["metrics"]["u_cwe"]), "0.5"))
    assert read_json(path)["metrics"]["u_cwe"] == 0.5
    assert not runs.has(unit)
    with pytest.raises(CorruptFile, match=r"metrics.json: damaged, edited"):
        runs.read(unit)
