"""Groups of points, from the file's `groups` to tables, worst intervals and gaps of their own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pipeline.groups import find_groups, group_sizes
from pipeline.sections import groups_of, section_of

from metrics import scorecard
from pipeline.evaluate import held_out
from pipeline.fit import fit_tasks
from pipeline.harness.artifacts import read_json, read_npz
from pipeline.reporting.tables import TableSpec
from scripts import score as script

N = 420


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two calibrated groups, of which `south` gets too little for class 0, and one of 9 points."""
    folder = tmp_path_factory.mktemp("groups")
    random = np.random.default_rng(0)
    logits = random.normal(size=(N, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([random.choice(3, p=row) for row in p])
    groups = np.where(np.arange(N) < 9, "tiny", random.choice(["north", "south"], N))
    logits[groups == "south", 0] -= 3
    np.savez(folder / "in.npz", logits=logits, labels=labels, groups=groups)
    arguments = [str(folder / "in.npz"), "--output", str(folder / "out"), "--jobs", "1", "--quick"]
    options = script.parse([*arguments, "--methods", "uncalibrated", "temperature"])
    script.score(options)
    return folder / "out", options, groups


def test_a_group_has_the_numbers_of_its_own_points(scored):
    _, options, groups = scored
    units = script.units_for(options)
    found = {group.name: group for group in find_groups(units)["in"]}
    assert list(found) == ["north", "south", "tiny"]
    fit = fit_tasks(units)[-1]  # temperature, the last split
    test = held_out(fit, "cpu")
    own = test.where(groups[test.points] == "south")
    plain = scorecard(
        own.probabilities, own.labels, utilities=200, floor_repetitions=100, points=own.points
    )
    (result,) = [
        unit
        for unit in found["south"].units
        if (unit.method, unit.split) == (fit.unit.calibrator, fit.unit.split)
    ]
    assert dict(result.metrics) == plain.metrics
    assert result.noise_floor == plain.noise_floor
    assert result.test_points == len(own.labels)


def test_small_groups_are_told_and_not_scored(scored):
    out, options, _ = scored
    units = script.units_for(options)
    assert group_sizes(units[0].settings)["tiny"] == 9
    (tiny,) = [group for group in find_groups(units)["in"] if group.name == "tiny"]
    assert not tiny.units
    assert "Group tiny (9 points) is too small" in (out / "report.md").read_text()


def test_the_group_that_is_treated_differently_is_named(scored):
    out, _, _ = scored
    said = read_json(out / "verdict.json")["groups"]
    (gap,) = [
        gap for gap in said["gaps"] if (gap["method"], gap["metric"]) == ("uncalibrated", "u_cwe")
    ]
    assert (gap["larger"], gap["smaller"]) == ("south", "north")
    assert gap["p_value"] < 0.05
    assert list(said["verdicts"]) == ["north", "south"]
    assert any("south" in sentence for sentence in said["sentences"])


def test_each_group_has_a_table_and_worst_intervals_on_the_page(scored):
    out, _, _ = scored
    table = pd.read_csv(out / "groups.csv")
    assert table.groupby("group")["metric"].nunique().nunique() == 1
    assert dict(table.groupby("group")["points"].first()) == {
        name: size
        for name, size in read_json(out / "data" / "logits" / "in.json")["groups"].items()
        if name != "tiny"
    }
    page = (out / "report.html").read_text()
    for name in ("north", "south"):
        assert f"group {name} (" in page
    assert page.count("Where it fails") == 3


def test_a_method_that_was_not_scored_by_group_is_left_out(scored):
    _, options, _ = scored
    settings = script.settings_of(options)
    (south,) = [g for g in find_groups(script.units_for(options))["in"] if g.name == "south"]
    alone = replace(south, units=[unit for unit in south.units if unit.method == "temperature"])
    spec = TableSpec("in", "in", ["accuracy", "u_cwe"], ["uncalibrated", "temperature"])
    main = section_of(settings, south.units, [spec], [], {})
    section = groups_of(settings, main, [alone]).sections["south"]
    assert [row.key for row in section.tables[0].rows] == ["temperature"]


def test_scoring_again_computes_no_group_again(scored):
    out, options, _ = scored
    files = sorted((out / "runs").rglob("groups.npz"))
    assert len(files) == 2
    before = [path.stat().st_mtime_ns for path in files]
    find_groups(script.units_for(options))
    assert [path.stat().st_mtime_ns for path in files] == before
    assert all(read_npz(path) for path in files)
