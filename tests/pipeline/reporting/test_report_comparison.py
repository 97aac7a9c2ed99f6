from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from pipeline.reporting.candidates import (
    candidates,
    known_benchmarks,
    paper_rule,
)
from pipeline.reporting.collect import summarise
from pipeline.reporting.comparison import (
    CELL_COLUMNS,
    Candidate,
    Rule,
    compare,
    printed_values,
)
from pipeline.reporting.comparison_pages import (
    cell_lines,
    comparison_markdown,
    left_lines,
    summary_lines,
    write_comparison,
)

CONF = Path(__file__).parents[3] / "conf"


def test_printed_values_are_unscaled() -> None:
    cells = printed_values().set_index(["table", "method", "metric"])
    row = cells.loc[("cifar10_repvgg", "uncalibrated", "cwe_bin")]
    assert row["printed"] == pytest.approx(39.8e-4)
    assert row["printed_two_se"] == pytest.approx(5e-4)
    assert len(cells) == 324  # 24 + 5 x 42 - 6 (no U_dcg) + 2 x 48


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


def test_cells_differences_and_defaults(cells) -> None:
    assert list(cells.columns) == list(CELL_COLUMNS)
    row = cells[(cells["metric"] == "brier") & cells["default"]].iloc[0]
    assert row["difference"] == pytest.approx(0.010)
    assert row["z"] == pytest.approx(0.010 / math.hypot(0.001, 0.001))
    assert row["outside"]
    assert set(cells[cells["default"]]["variant"]) == {"isotonic", "temperature"}
    assert not cells[cells["configuration"] != ""]["default"].any()


def test_the_default_is_counted_without_its_variants(cells) -> None:
    assert summary_lines(cells, {"cifar10_repvgg": "RepVGG"}) == [
        ("RepVGG", "2 of 3 within 3 s.e.", "")
    ]


def test_one_rule_is_counted_beside_and_what_it_leaves_is_listed_with_its_reason() -> None:
    printed = printed_values().set_index(["table", "method", "metric"])["printed"].sort_index()

    def exact(table: str, method: str, variant: str, **moved: float) -> pd.DataFrame:
        keys = printed.loc[(table, method)].to_dict()
        return ours({(variant, key): moved.get(key, value) for key, value in keys.items()})

    rule = Rule(("b", "c"), ("uncalibrated", "vector_brier"), "evaluation=paper_batches")
    rows = [
        (
            "cifar10_resnet",
            "b",
            exact("cifar10_resnet", "uncalibrated", "uncalibrated", cwe_bin=0.0),
        ),
        ("cifar10_repvgg", "c", exact("cifar10_repvgg", "vector", "vector_brier", brier=0.5)),
        ("cifar10_repvgg", "c", exact("cifar10_repvgg", "vector", "vector")),
    ]
    found = [Candidate(key, name, summary.assign(benchmark=name), rule.configuration)
             for key, name, summary in rows]  # fmt: skip
    cells = compare(found, printed_values(), rule)
    assert set(cells[cells["preset"]]["variant"]) == set(rule.variants)
    lines = summary_lines(cells, {})
    assert [line[2] for line in lines] == [
        "6 of 7 within 3 s.e.",
        "6 of 7 within 3 s.e.",
        "12 of 14 within 3 s.e.",
    ]
    left = left_lines(cells, {})
    assert [line[:3] for line in left] == [
        ("cifar10_repvgg", "Vector Scaling (by Brier score)", "Brier ×10²"),
        ("cifar10_resnet", "Uncalibrated", "CWE_bin ×10⁴"),
    ]
    assert left[0][-1] == "unexplained"
    assert "equal width" in left[1][-1]
    page = comparison_markdown(cells, {})
    assert "unexplained" in page and "equal width" in page


def test_the_rule_of_the_preset_is_what_its_suite_and_evaluation_say() -> None:
    rule = paper_rule()
    assert "cifar10_resnet44" in rule.benchmarks and "vector_brier" in rule.variants
    assert rule.configuration == "evaluation=paper_batches"


def test_lines_are_scaled_as_printed(cells) -> None:
    default = cells[cells["default"] & (cells["metric"] == "brier")]
    (line,) = cell_lines(default)
    assert line == ("IR", "Brier ×10²", "8.20 ± 0.20", "9.20 ± 0.20", "+1.00", "+7.1", "▲")


def test_results_on_disk_and_their_alternatives(write_scores, tmp_path) -> None:
    few, batches = ("uncalibrated", "isotonic_raw"), ("evaluation=paper_batches",)
    write_scores("cifar10_resnet", "cifar10_resnet", few, shift=-0.02)
    write_scores("cifar10_resnet", "cifar10_resnet", few, extra=batches)
    write_scores("cifar10_resnet44", "cifar10_resnet", few)
    write_scores("cifar10_repvgg", "cifar10_repvgg", few, name="cifar10_repvgg_a2")
    write_scores("digits", "yahoo", few)
    write_scores("cifar100_resnet", "cifar100_resnet", few, splits=2)
    found = candidates(tmp_path / "results", known_benchmarks(CONF), 4)
    assert [(c.paper_key, c.benchmark, c.configuration) for c in found] == [
        ("cifar10_resnet", "cifar10_resnet", ""),
        ("cifar10_resnet", "cifar10_resnet44", ""),
        ("cifar10_repvgg", "cifar10_repvgg_a2", ""),
        ("cifar10_resnet", "cifar10_resnet", "evaluation=paper_batches"),
    ]
    cells = compare(found, printed_values())
    assert list(dict.fromkeys(cells["table"])) == ["cifar10_repvgg", "cifar10_resnet"]
    default = cells[cells["default"] & (cells["table"] == "cifar10_resnet")]
    assert set(default["benchmark"]) == {"cifar10_resnet"}
    assert len(default) == 7


def test_table_one_is_compared_with_the_vit(write_scores) -> None:
    scores = write_scores("imagenet_vit", "imagenet_vit", methods=("patching",))
    found = [Candidate("imagenet_vit", "imagenet_vit", summarise(scores))]
    totals = compare(found, printed_values())["table"].value_counts().to_dict()
    assert totals == {"imagenet_vit_table1": 4, "imagenet_vit": 7}


def test_pages(cells, tmp_path: Path) -> None:
    paths = write_comparison(cells, {"cifar10_repvgg": "A <b> & c"}, tmp_path)
    assert [path.name for path in paths] == ["comparison.md", "comparison.csv"]
    lines = paths[0].read_text().splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {4, 8}
    back = pd.read_csv(paths[1], keep_default_na=False)
    assert back["z"].tolist() == pytest.approx(cells["z"].tolist(), rel=1e-6)
