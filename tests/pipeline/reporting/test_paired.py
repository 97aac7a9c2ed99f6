import math
from pathlib import Path

import pandas as pd
import pytest

from utility_calibration.pipeline.reporting.comparison import compare, printed_values
from utility_calibration.pipeline.reporting.paired import changes_of, with_changes, write_paired


def rows_of(values: dict[str, list[float]]) -> pd.DataFrame:
    """The accuracy of each method in each split."""
    cells = [
        {"variant": variant, "metric": "accuracy", "split": str(split), "ours": value}
        for variant, of_splits in values.items()
        for split, value in enumerate(of_splits)
    ]
    return pd.DataFrame(cells)


def test_a_change_is_taken_within_each_split() -> None:
    rows = rows_of({"uncalibrated": [0.90, 0.80], "vector": [0.91, 0.83]})
    change = changes_of(rows).loc["vector", "accuracy"]
    assert change["change"] == pytest.approx(0.02)
    assert change["change_two_se"] == pytest.approx(2 * math.sqrt(0.0002) / math.sqrt(2))


@pytest.mark.parametrize("values", [{"vector": [0.9]}, {"uncalibrated": [0.9]}])
def test_without_two_methods_there_is_no_change(values) -> None:
    assert changes_of(rows_of(values)).empty


def test_a_split_that_one_method_lacks_is_left_out() -> None:
    rows = rows_of({"uncalibrated": [0.90, 0.80], "vector": [0.91]})
    change = changes_of(rows).loc["vector", "accuracy"]
    assert change["change"] == pytest.approx(0.01)
    assert math.isnan(change["change_two_se"])


def test_the_printed_change_stands_beside_ours(tmp_path: Path) -> None:
    """Printed: 94.4 and 94.6, so +.2 in steps of .1; ours is -.1 ± .02."""
    keys = {"benchmark": "b", "configuration": "", "metric": "accuracy"}
    ours = pd.DataFrame({"variant": ["uncalibrated", "vector"], "ours": [0.945, 0.944]})
    ours = ours.assign(**keys, candidate=0, paper_key="cifar10_repvgg", ours_two_se=0.002)
    cells = compare(ours, printed_values(), {"benchmark": ["b"]})
    change = {"variant": ["vector"], "change": [-0.001], "change_two_se": [0.0002]}
    paired = with_changes(cells, pd.DataFrame(change).assign(**keys).set_index("variant"))
    row = paired.set_index("variant").loc["vector"]
    assert row["printed_change"] == pytest.approx(0.002)
    error = math.sqrt(2 * 0.0001**2 + 2 * 0.001**2 / 12)
    assert row["change_z"] == pytest.approx(-0.003 / error)
    write_paired(paired, tmp_path)
    written = pd.read_csv(tmp_path / "comparison_paired.csv")
    assert list(written["variant"]) == ["vector"]
    text = (tmp_path / "comparison_paired.md").read_text()
    assert "| +0.2 | -0.100 ± 0.020 | -6.9 | ▼ |" in text


def test_the_unit_of_a_printed_change_is_the_coarser_one() -> None:
    """94.0 in a column of one decimal, 8.36 beside 37.4, 76.9 beside 108."""
    cells = printed_values().set_index(["table", "method", "metric"])
    unit = cells["printed_unit"] * 10.0 ** cells["power_of_ten"]
    assert unit["cifar10_resnet", "isotonic", "accuracy"] == pytest.approx(0.1)
    assert unit["cifar10_repvgg", "isotonic", "tce_bin"] == pytest.approx(0.1)
    assert unit["cifar10_repvgg", "isotonic", "u_cwe"] == pytest.approx(1)
