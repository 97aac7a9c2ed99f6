import math

import pandas as pd
import pytest

from utility_calibration.pipeline.reporting import comparison
from utility_calibration.pipeline.reporting.comparison import compare, printed_values


def ours(
    candidate: int, paper_key: str, values: dict[tuple[str, str], float], configuration: str = ""
) -> pd.DataFrame:
    """Results of the benchmark `b`, each ± .002."""
    rows = [(variant, key, value) for (variant, key), value in values.items()]
    shared = {"candidate": candidate, "paper_key": paper_key, "configuration": configuration}
    table = pd.DataFrame(rows, columns=["variant", "metric", "ours"])
    return table.assign(**shared, benchmark="b", ours_two_se=0.002)


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
    results = [
        ours(0, "cifar10_repvgg", default),
        ours(1, "cifar10_repvgg", other, "evaluation=paper_batches"),
    ]
    nothing: dict[str, list[str]] = {"benchmark": [], "variant": []}
    return compare(pd.concat(results), printed_values(), nothing)


def test_differences_by_hand_and_what_the_default_counts(cells) -> None:
    row = cells[(cells["metric"] == "brier") & cells["default"]].iloc[0]
    assert row["difference"] == pytest.approx(0.010)
    assert row["z"] == pytest.approx(0.010 / math.hypot(0.001, 0.001))
    assert row["outside"]
    assert set(cells[cells["default"]]["variant"]) == {"isotonic", "temperature"}
    assert not cells[cells["configuration"] != ""]["default"].any()
    ((title, default, preset),) = comparison.summary_of(cells).rows
    assert (title, default[:6], preset) == ("cifar10_repvgg", "2 of 3", "")
    assert default.endswith("rms z 4.1")  # of 0, 7.07 and 0
    (line,) = comparison.cell_lines(cells[cells["default"] & (cells["metric"] == "brier")])
    assert line == ("IR", "Brier ×10²", "8.20 ± 0.20", "9.20 ± 0.20", "+1.00", "+7.1", "▲")
