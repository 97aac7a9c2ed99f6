"""How far numbers agree with the printed ones, and those of two seeds with each other."""

import math

import pandas as pd
import pytest

from utility_calibration.pipeline.reporting import agreement

METRICS = ["accuracy", "brier", "nll"]


def cells_of(ours: list[float], **columns: object) -> pd.DataFrame:
    """Cells of one method, each ± .2, beside 1, 2 and 3 ± .2: joint standard errors are √2/10."""
    table = pd.DataFrame({"table": "t", "method": "m", "metric": METRICS, "ours": ours})
    table = table.assign(ours_two_se=0.2, printed=[1.0, 2.0, 3.0], printed_two_se=0.2)
    return table.assign(**{"default": False, "preset": True} | columns)


def rows_of(text: str) -> dict[str, list[str]]:
    """The cells of each row of a table by its first one."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {first: rest for first, *rest in lines[2:]}


@pytest.fixture
def folder(tmp_path):
    """Seeds 0 and 1: the first is that of the page, the second is .3 further in the last cell."""
    seeds = [cells_of([1.0, 2.2, 3.3], seed=0), cells_of([1.0, 2.2, 3.6], seed=1)]
    pd.concat(seeds).drop(columns=["default", "preset"]).to_csv(
        tmp_path / agreement.SEEDS_FILE, index=False
    )
    return tmp_path


def test_agreement_by_hand():
    """Differences 0, .2 and .5 of joint standard errors √.02: z is 0, 1.41 and 3.54."""
    found = agreement.with_printed(cells_of([1.0, 2.2, 3.5]))
    assert (found.cells, found.within_three, found.within_two, found.within_spread) == (3, 2, 2, 2)
    assert found.deviation == pytest.approx(0.1)
    assert found.rms == pytest.approx(math.sqrt((0.04 + 0.25) / 0.02 / 3))


def test_equal_numbers_without_a_spread_agree():
    one = pd.Series([1.0, 2.0])
    unknown = pd.Series([float("nan")] * 2)
    found = agreement.agreement(one, unknown, one, unknown)
    assert (found.within_three, found.rms) == (2, 0.0)


def test_the_page_counts_both_sets_of_settings():
    cells = pd.concat([cells_of([1.0, 2.2, 3.3]), cells_of([1, 2, 4], default=True, preset=False)])
    rows = rows_of(agreement.fairness_text(cells))
    counts = {name: row[:4] for name, row in rows.items()}
    assert counts == {
        "Our default": ["3", "2", "2", "2"],
        "suite=paper_closest": ["3", "3", "2", "2"],
    }
    assert agreement.fairness_text(cells[:0]) == ""


def test_the_page_counts_the_mean_of_the_seeds_and_two_of_our_own(folder):
    cells = cells_of([1.0, 2.2, 3.3])
    seeds = agreement.seeds_below(folder, cells)
    rows = rows_of(agreement.fairness_text(cells, seeds))
    assert rows["suite=paper_closest"][1] == "3"
    mean = rows["suite=paper_closest, mean of 2 seeds"]
    assert mean[:3] == ["3", "2.5 (2 … 3)", "2.0 (2 … 2)"]
    own = rows["Two of our own seeds, one pair"]
    assert own[:3] == ["3", "3.0 (3 … 3)", "2.0 (2 … 2)"]  # one cell is .3 apart: z is 2.12
    assert own[-1] == f"{0.3 / math.sqrt(0.02) / math.sqrt(3):.2f}"


def test_seeds_of_other_settings_are_counted(folder):
    """Of the page's cells one has another number than the first seed; the second seed may."""
    cells = cells_of([1.0, 2.2, 3.3])
    assert agreement.seeds_below(folder, cells)["is_other"].sum() == 0
    changed = agreement.seeds_below(folder, cells_of([1.0, 2.21, 3.3]))
    assert changed["is_other"].sum() == 1
    assert len(agreement.fairness_text(cells, changed)) > len(
        agreement.fairness_text(cells, agreement.seeds_below(folder, cells))
    )


def test_without_the_file_or_without_its_cells_no_seed_is_counted(folder, tmp_path):
    cells = cells_of([1.0, 2.2, 3.3])
    assert agreement.seeds_below(folder, cells.assign(table="another")) is None
    assert agreement.seeds_below(folder, cells.assign(preset=False)) is None
    (folder / agreement.SEEDS_FILE).unlink()
    assert agreement.seeds_below(folder, cells) is None
