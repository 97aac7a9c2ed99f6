"""The text files of a benchmark: what stays in them, what leaves, what is refused."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.reporting.conftest import UTILITIES, arrays_of, request_of, scored
from tests.refusals import fails
from utility_calibration.pipeline.harness.artifacts import read_npz, save_npz
from utility_calibration.pipeline.harness.cache import publish
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.scoring import scores as module
from utility_calibration.pipeline.scoring.files import Scores, score_files
from utility_calibration.pipeline.scoring.points import CachedLogits
from utility_calibration.pipeline.scoring.scores import with_all_splits, write_scores

WORST = {"u_cwe": {"name": "class 1", "utility": 1, "low": 0.1, "high": 1 / 3, "gap": -0.1,
                   "gain": 0.05, "threshold": 0.5, "act_from": None,
                   "share": 0.5, "diagram": {"at": [0.0, 1.0]}}}  # fmt: skip
DETAILS = {"n": 100, "classes": 10, "versions": {"numpy": "2"}, "file": "/a/b"}
LOGITS = CachedLogits(Path("digits.npz"), "ab", DETAILS)


@pytest.fixture
def evaluated(tmp_path, monkeypatch):
    """`evaluated(*calibrators, extra=…)`: units of two splits whose npz are there."""
    # No fits are there.
    monkeypatch.setattr(module, "read_npz", lambda path: read_npz(path) if path.exists() else {})

    def made(*calibrators, extra=(), scale=1.0):
        request = request_of(tmp_path, "digits", suite="digits", splits=2, extra=extra)
        units = replace(request, calibrators=calibrators).units()
        for unit in units:
            random = np.random.default_rng(unit.split)
            arrays = arrays_of(0.01, random, ["accuracy", "u_cwe"])
            values = {"accuracy": 0.9, "u_cwe": scale * (0.1 + random.random())}
            record = scored(unit.split, values).record
            publish(unit.scores_path, partial(save_npz, arrays=arrays), {**record, "key": "1"})
        return units

    return made


def written(units):
    """The files that are written, or none."""
    complete = with_all_splits(units)
    across = {name: {"worst": WORST, "groups": {}} for name in complete}
    return write_scores(complete, across, LOGITS) if complete else []


def texts(units):
    files = score_files(units[0].settings)
    return {path.name: path.read_text() for path in (files.rows, files.curves, files.facts)}


def test_the_files_say_what_was_measured_and_are_the_same_bytes_again(evaluated):
    units = evaluated("vector", "temperature")
    paths = written(units)
    assert [path.name for path in paths] == ["digits.csv", "digits.ecdf.csv", "digits.json"]
    first = texts(units)
    written(units[::-1])
    assert texts(units) == first
    read = Scores.read(score_files(units[0].settings))
    assert read.methods == ["temperature", "vector"]
    assert len(read.own_curves()) == 2 * 2 * min(121, UTILITIES)
    assert read.worst("vector")["u_cwe"]["high"] == 0.3333333
    assert "/a/b" not in first["digits.json"] and "versions" not in first["digits.json"]
    assert read.facts["calibrators"]["vector"]["config"] == units[0].settings.calibrator
    cells = [cell for line in first["digits.csv"].splitlines()[1:] for cell in line.split(",")[4:]]
    assert all(cell == f"{float(cell):.7g}" for cell in cells if cell)


def test_rows_of_other_calibrators_stay_but_other_settings_are_not_mixed(evaluated, capsys):
    units = evaluated("vector", "temperature")
    written(units)
    before = texts(units)["digits.csv"].splitlines()
    written(evaluated("vector", scale=2.0))
    after = texts(units)["digits.csv"].splitlines()
    for name, stays in (("temperature", True), ("vector", False)):
        rows = [[line for line in lines if name in line] for lines in (before, after)]
        assert (rows[0] == rows[1]) is stays
    other = evaluated("vector", extra=("splits.seed=1",))
    with fails(UsageError, "digits.csv", "temperature", "splits.seed=0"):
        written(other)
    written(evaluated("vector", "temperature", extra=("splits.seed=1",)))
    assert "splits.seed=0" in capsys.readouterr().out


def test_rows_of_a_calibrator_stay_that_another_folder_of_settings_has(evaluated):
    units = evaluated("vector", "temperature")
    written(units)
    files = score_files(units[0].settings)
    for path in (files.rows, files.curves, files.facts):
        path.write_text(path.read_text().replace("vector", "mine"))
    written([unit for unit in units if unit.calibrator == "temperature"])
    assert set(Scores.read(files).methods) == {"mine", "temperature"}


def test_a_calibrator_gets_rows_once_all_splits_are_there(evaluated):
    units = evaluated("vector", "temperature")
    written(units[:3])
    assert Scores.read(score_files(units[0].settings)).methods == ["vector"]
    assert written(units[3:]) == []
