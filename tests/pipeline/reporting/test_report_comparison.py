from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from pipeline.reporting.candidates import (
    candidates,
    known_benchmarks,
)
from pipeline.reporting.comparison import (
    Candidate,
    Rule,
    compare,
    printed_values,
)
from pipeline.reporting.comparison_pages import (
    cell_lines,
    left_lines,
    summary_lines,
)

CONF = Path(__file__).parents[3] / "conf"


def ours(values: dict[tuple[str, str], float], two_se: float = 0.002) -> pd.DataFrame:
    rows = [("b", m, k, v, two_se, 10, 0.0, 0.0) for (m, k), v in values.items()]
    columns = ["benchmark", "method", "metric", "mean", "two_se", "splits", "a", "b"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture
def cells() -> pd.DataFrame:
    """Printed: isotonic accuracy .946 ± .002, Brier .082 ± .002; all joint s.e. are .001414."""
    default = {
        ("isotonic", "accuracy"): 0.946,
        ("isotonic", "brier"): 0.092,
        ("isotonic_raw", "accuracy"): 0.946,
        ("isotonic_raw", "brier"): 0.083,
        ("temperature", "accuracy"): 0.945,
    }
    other = {("isotonic", "accuracy"): 0.9, ("isotonic", "brier"): 0.0825}
    found = [
        Candidate("cifar10_repvgg", "b", ours(default)),
        Candidate("cifar10_repvgg", "b", ours(other), "evaluation=paper_batches"),
    ]
    return compare(found, printed_values())


def test_differences_by_hand_and_what_the_default_counts(cells) -> None:
    row = cells[(cells["metric"] == "brier") & cells["default"]].iloc[0]
    assert row["difference"] == pytest.approx(0.010)
    assert row["z"] == pytest.approx(0.010 / math.hypot(0.001, 0.001))
    assert row["outside"]
    assert set(cells[cells["default"]]["variant"]) == {"isotonic", "temperature"}
    assert not cells[cells["configuration"] != ""]["default"].any()
    assert summary_lines(cells, {"cifar10_repvgg": "RepVGG"}) == [
        ("RepVGG", "2 of 3 within 3 s.e.", "")
    ]
    (line,) = cell_lines(cells[cells["default"] & (cells["metric"] == "brier")])
    assert line == ("IR", "Brier ×10²", "8.20 ± 0.20", "9.20 ± 0.20", "+1.00", "+7.1", "▲")


def test_one_rule_is_counted_beside_and_what_it_leaves_is_listed_with_its_reason() -> None:
    printed = printed_values().set_index(["table", "method", "metric"])["printed"].sort_index()

    def moved(table: str, method: str, variant: str, **values: float) -> Candidate:
        keys = printed.loc[(table, method)].to_dict() | values
        own = ours({(variant, key): value for key, value in keys.items()})
        return Candidate(table, "b", own, rule.configuration)

    rule = Rule(("b",), ("uncalibrated", "vector_brier"), "evaluation=paper_batches")
    candidates = [
        moved("cifar10_resnet", "uncalibrated", "uncalibrated", cwe_bin=0.0),
        moved("cifar10_repvgg", "vector", "vector_brier", brier=0.5),
        moved("cifar10_repvgg", "vector", "vector"),
    ]
    cells = compare(candidates, printed_values(), rule)
    assert set(cells[cells["preset"]]["variant"]) == set(rule.variants)
    counts = [line[2] for line in summary_lines(cells, {})]
    assert counts == [*["6 of 7 within 3 s.e."] * 2, "12 of 14 within 3 s.e."]
    left = left_lines(cells, {})
    assert [line[1:3] for line in left] == [
        ("Vector Scaling (by Brier score)", "Brier ×10²"),
        ("Uncalibrated", "CWE_bin ×10⁴"),
    ]
    assert left[0][-1] == "unexplained"
    assert "equal width" in left[1][-1]


def test_results_on_disk_and_their_alternatives(write_scores, tmp_path) -> None:
    few, batches = ("uncalibrated", "isotonic_raw"), ("evaluation=paper_batches",)
    write_scores("cifar10_resnet", "cifar10_resnet", few, shift=-0.02)
    write_scores("cifar10_resnet", "cifar10_resnet", few, extra=batches)
    write_scores("cifar10_resnet44", "cifar10_resnet", few)
    write_scores("cifar10_repvgg", "cifar10_repvgg", few, name="cifar10_repvgg_a2")
    write_scores("digits", "yahoo", few)  # the paper has no such benchmark
    found = candidates(tmp_path / "results", known_benchmarks(CONF), 4)
    assert [(c.paper_key, c.benchmark, c.configuration) for c in found] == [
        ("cifar10_resnet", "cifar10_resnet", ""),
        ("cifar10_resnet", "cifar10_resnet44", ""),
        ("cifar10_repvgg", "cifar10_repvgg_a2", ""),
        ("cifar10_resnet", "cifar10_resnet", "evaluation=paper_batches"),
    ]
