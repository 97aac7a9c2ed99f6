"""Models and data of the hub are pinned on first use: one commit, until another is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.harness.artifacts import read_json, read_npz
from pipeline.harness.command import UnitsFailed
from pipeline.harness.units import Settings
from pipeline.logits import run_logits
from pipeline.reporting.provenance import write_sidecars
from pipeline.sources.class_names import YAHOO
from tests.pipeline.conftest import request_of
from tests.pipeline.sources.test_yahoo import ROWS, save_data, save_model

MODEL, DATA = "somebody/distilbert", "somebody/answers"
FIRST, SECOND = "0123456789abcdef" * 2 + "01234567", "89abcdef" * 5


@pytest.fixture
def hub(tmp_path: Path, hub_cache: Callable[..., Path]) -> Path:
    """The cache's folder of a model with two commits, the second one the newest, and of data."""
    model = save_model(tmp_path / "model", dict(enumerate(YAHOO)))
    files = {file.name: file.read_bytes() for file in model.iterdir()}
    folder = hub_cache("model", MODEL, files)
    names = {
        **dict(enumerate(YAHOO)),
        0: YAHOO[1],
        1: YAHOO[0],
    }  # other logits
    other = save_model(tmp_path / "other", names)
    other.rename(folder / "snapshots" / SECOND)
    data = save_data(tmp_path / "test-00000-of-00001.parquet")
    hub_cache("dataset", DATA, {data.name: data.read_bytes()})
    return folder


def is_newest(folder: Path, commit: str) -> None:
    (folder / "refs" / "main").write_text(commit)


def wanted(tmp_path: Path, *overrides: str) -> list[Settings]:
    fixed = (
        *("benchmark=yahoo", "device=cpu", f"benchmark.source.expected_rows={ROWS}"),
        *(f"benchmark.source.model={MODEL}", f"benchmark.source.data={DATA}"),
        *(f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / 'results'}"),
    )
    return request_of(*fixed, *overrides).benchmark_settings()


def made(settings: list[Settings], tmp_path: Path) -> tuple[Any, dict[str, str]]:
    """The logits and the commits that the sidecar names."""
    run_logits(settings)
    record = read_json(tmp_path / "data/logits/yahoo.json")
    return read_npz(tmp_path / "data/logits/yahoo.npz")["logits"], record["origin"]["commits"]


def test_logits_made_anew_are_of_the_commit_of_the_first_time(
    hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, commits = made(wanted(tmp_path), tmp_path)
    assert commits == {MODEL: FIRST, DATA: FIRST}
    told = capsys.readouterr().out
    assert f"yahoo: {MODEL}: commit {FIRST}, the newest known here, is taken from now on" in told
    assert f"{DATA}: commit {FIRST}, the newest known here" in told
    is_newest(hub, SECOND)
    again, commits = made(wanted(tmp_path, "force=true"), tmp_path)
    np.testing.assert_array_equal(again, before)
    assert commits[MODEL] == FIRST
    assert "commit" not in capsys.readouterr().out


def test_the_newest_is_taken_where_it_is_asked_for_and_said(
    hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, _ = made(wanted(tmp_path), tmp_path)
    is_newest(hub, SECOND)
    newest, commits = made(wanted(tmp_path, "benchmark.source.model_revision=newest"), tmp_path)
    assert commits == {MODEL: SECOND, DATA: FIRST}
    assert np.abs(newest - before).max() > 1e-3
    assert f"{MODEL}: commit {SECOND}, the last time it was {FIRST}" in capsys.readouterr().out
    again, commits = made(wanted(tmp_path), tmp_path)
    assert commits[MODEL] == SECOND, "that one is the one to keep from now on"
    np.testing.assert_array_equal(again, newest)


def test_the_record_kept_with_the_results_pins_too(hub: Path, tmp_path: Path) -> None:
    settings = wanted(tmp_path)
    made(settings, tmp_path)
    write_sidecars(settings, tmp_path / "results" / "logits")
    for file in (tmp_path / "data" / "logits").iterdir():
        file.unlink()
    is_newest(hub, SECOND)
    assert made(settings, tmp_path)[1][MODEL] == FIRST


def test_a_recorded_commit_that_is_gone_is_named_and_not_replaced(
    hub: Path, tmp_path: Path
) -> None:
    made(wanted(tmp_path), tmp_path)
    (hub / "snapshots" / FIRST).rename(hub / "snapshots" / ("f" * 40))
    is_newest(hub, SECOND)
    with pytest.raises(UnitsFailed, match=f"hf download {MODEL} --revision {FIRST}"):
        run_logits(wanted(tmp_path, "force=true"))


def test_another_model_is_not_held_to_the_firsts_commit(hub: Path, tmp_path: Path) -> None:
    made(wanted(tmp_path), tmp_path)
    folder = hub.with_name("models--somebody--else")
    hub.rename(folder)
    is_newest(folder, SECOND)
    _, commits = made(wanted(tmp_path, "benchmark.source.model=somebody/else"), tmp_path)
    assert commits == {"somebody/else": SECOND, DATA: FIRST}
