"""The study of regret: what it computes, keeps and prints, on two small problems."""

import numpy as np
import pandas as pd
import pytest

from utility_calibration.scripts.maintain import regret
from utility_calibration.scripts.maintain.regret_problems import SOURCES, Cell, cells


def test_there_are_172_problems_of_three_kinds():
    drawn = list(cells(regret.SEEDS))
    assert len(drawn) == len(set(drawn)) == 172
    assert len({source.kind for source in SOURCES.values()}) == 3


@pytest.mark.parametrize("source", [name for name in SOURCES if not name.startswith("CIFAR")])
def test_a_problem_is_that_of_its_seed(source, tmp_path):
    n_points = SOURCES[source].sizes[0]
    problem = Cell(source, n_points, 0).problem(tmp_path)
    assert problem.logits.shape == (n_points, problem.truth.shape[1])
    assert problem.new_logits.shape == problem.truth.shape
    np.testing.assert_allclose(problem.truth.sum(axis=1), 1)
    again, other = (Cell(source, n_points, seed).problem(tmp_path) for seed in (0, 1))
    np.testing.assert_array_equal(again.logits, problem.logits)
    assert not np.array_equal(other.logits, problem.logits)


def test_the_truth_has_the_smallest_expected_losses():
    truth = np.array([[0.5, 0.5], [0.9, 0.1]])
    best = regret.expected_losses(truth, truth)
    assert best["brier"] == pytest.approx((0.5 + 0.18) / 2)
    other = regret.expected_losses(np.array([[0.6, 0.4], [0.9, 0.1]]), truth)
    assert all(other[loss] > best[loss] for loss in best)
    hits = regret.expected_losses(truth, np.eye(2))
    assert hits["nll"] == pytest.approx(-np.log([0.5, 0.1]).mean())


def table_of(losses):
    """Losses [sources × methods]: one problem each, the same for both losses."""
    rows = [
        {"source": source, "n_points": 60, "seed": 0, "method": name, "nll": loss, "brier": loss}
        for source, of_methods in losses.items()
        for name, loss in of_methods.items()
    ]
    return pd.DataFrame(rows)


def test_regret_is_over_the_best_and_the_default_can_beat_all_rivals():
    table = table_of({"a": {"x": 1.0, "y": 2.0}, "b": {"x": 3.0, "y": 2.0}})
    ratios = regret.ratios_of(table, "nll")
    assert ratios["x"].to_dict() == {("a", 60, 0): 1.0, ("b", 60, 0): 1.5}
    assert regret.ratios_of(table, "nll", "x")["x"].tolist() == [0.5, 1.5]
    mean, error = regret.geometric_mean(ratios["x"])
    assert mean == pytest.approx(1.5**0.5)
    assert error == pytest.approx(mean * np.log(1.5) / 2)  # of two sources: half of their gap


def test_what_is_computed_is_kept_until_the_code_changes(tmp_path, monkeypatch):
    cell, wanted = Cell("6 classes, one rare", 60, 0), regret.methods(with_peers=False)
    some = {name: wanted[name] for name in ("Uncalibrated", "Temp. Scaling")}
    first = regret.computed(cell, some, tmp_path, tmp_path)
    monkeypatch.setattr(regret, "losses_of", lambda method, problem: {"nll": 7.0, "brier": 7.0})
    assert regret.computed(cell, some, tmp_path, tmp_path) == first
    some["Uncalibrated"] = some["Uncalibrated"]._replace(code="another version")
    again = regret.computed(cell, some, tmp_path, tmp_path)
    assert again["Uncalibrated"]["nll"] == 7.0
    assert again["Temp. Scaling"] == first["Temp. Scaling"]


def test_the_page_has_a_row_for_every_method_and_source(tmp_path):
    arguments = ["--precomputed", str(tmp_path), "--data", str(tmp_path / "data")]
    arguments += ["--seeds", "1", "--sources", "rare", "--output", str(tmp_path)]
    assert regret.main(arguments) == 0
    page = (tmp_path / "regret.md").read_text()
    names = regret.methods(with_peers=False)
    assert all(page.count(f"| {name} |") >= 1 for name in names)
    assert page.count("6 classes, one rare") == len(regret.LOSSES)
    assert len(pd.read_csv(tmp_path / "regret.csv")) == 3 * len(names)


def test_a_source_that_does_not_exist_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        regret.main(["--precomputed", str(tmp_path), "--sources", "nothing such"])
    assert "--sources" in capsys.readouterr().err
