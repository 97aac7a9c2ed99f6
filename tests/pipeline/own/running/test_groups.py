"""Groups of points, from the file's `groups` to tables, worst intervals and gaps of their own."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.scripts.conftest import quick
from utility_calibration.metrics import scorecard
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.own.request.options import parsed
from utility_calibration.pipeline.own.running import run
from utility_calibration.pipeline.scoring.files import Scores, score_files
from utility_calibration.pipeline.scoring.held_out import held_out

N = 420
ONE = ("--methods", "uncalibrated", "--splits", "1")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two calibrated groups, of which `south` gets too little for class 0, and one of 9 points."""
    folder = tmp_path_factory.mktemp("groups")
    random = np.random.default_rng(0)
    logits = random.normal(size=(N, 3))
    labels = np.array([random.choice(3, p=row) for row in softmax(logits, axis=1)])
    groups = np.where(np.arange(N) < 9, "tiny", random.choice(["north", "south"], N))
    logits[groups == "south", 0] -= 3
    np.savez(folder / "in.npz", logits=logits, labels=labels, groups=groups)
    arguments = [str(folder / "in.npz"), "--output", str(folder / "out"), "--jobs", "1", "--quick"]
    options = parsed("", [*arguments, "--methods", "uncalibrated", "temperature"])
    run.run(options)
    job = run.read(options, run.checked(options))
    return folder / "out", job, groups


def test_a_group_has_the_numbers_of_its_own_points(scored):
    _, job, groups = scored
    unit = job.plan.units[-1]  # temperature, the last split
    scores = Scores.read(score_files(unit.settings))
    sizes = {name: int((groups == name).sum()) for name in np.unique(groups)}
    assert scores.facts["logits"]["groups"] == sizes
    test = held_out(unit)
    own = test.where(groups[test.points] == "south")
    plain = scorecard(
        own.probabilities, own.labels, utilities=200, floor_repetitions=100, points=own.points
    )
    rows = scores.of_group("south").own_rows()
    rows = rows[(rows["calibrator"] == unit.calibrator) & (rows["split"] == str(unit.split))]
    rows = rows.set_index("metric")
    assert rows["value"].dropna().to_dict() == pytest.approx(plain.metrics, rel=1e-6)
    assert rows.loc["u_cwe", "floor_q95"] == pytest.approx(plain["u_cwe"].floor.q95, rel=1e-6)
    assert set(rows["n_test"]) == {len(own.labels)}


def test_the_group_that_is_treated_differently_is_named_and_each_has_its_part(scored):
    out, job, groups = scored
    said = read_json(out / "verdict.json")["groups"]
    gaps = {(gap["method"], gap["metric"]): gap for gap in said["gaps"]}
    gap = gaps["uncalibrated", "u_cwe"]
    assert (gap["larger"], gap["smaller"]) == ("south", "north")
    assert gap["p_value"] < 0.05
    assert list(said["verdicts"]) == ["north", "south"]
    points = pd.read_csv(out / "groups.csv").groupby("group")["points"].first().to_dict()
    assert points == {name: int((groups == name).sum()) for name in ("north", "south")}
    page = (out / "report.html").read_text()
    assert all(f"group {name} (" in page for name in ("north", "south"))
    assert page.count("Where does a method fail?") == 3
    scores = Scores.read(score_files(job.first))
    assert scores.of_group("tiny").own_rows().empty
    assert "Group tiny (9 " in (out / "report.md").read_text()


PLAIN = np.random.default_rng(0)
ARRAYS = {"logits": PLAIN.normal(size=(200, 3)), "labels": PLAIN.integers(0, 3, 200)}


def test_other_groups_and_class_names_of_the_same_points_replace_earlier_ones(tmp_path):
    for (one, other), names in ((("n", "s"), ["a", "b", "c"]), (("old", "young"), ["x", "y", "z"])):
        groups = np.where(np.arange(200) % 2, one, other)
        np.savez(tmp_path / "in.npz", **ARRAYS, groups=groups, class_names=names)
        quick(tmp_path / "in.npz", tmp_path / "out", *ONE)
        facts = read_json(tmp_path / "out/scores/in.json")["calibrators"]["uncalibrated"]
        assert set(facts["groups"]) == {one, other}
        assert facts["worst"]["u_cwe"]["name"].removeprefix("class ") in names


def test_a_group_whose_points_have_no_weight_is_left_out_with_them(tmp_path, capsys):
    groups = np.where(np.arange(200) % 2, "north", "south")
    np.savez(tmp_path / "in.npz", **ARRAYS, groups=groups, weight=(groups == "north") * 2.0)
    quick(tmp_path / "in.npz", tmp_path / "out", *ONE)
    report = (tmp_path / "out/report.md").read_text()
    assert "100 cases of weight 0" in "".join(capsys.readouterr())
    assert "Group south" not in report
