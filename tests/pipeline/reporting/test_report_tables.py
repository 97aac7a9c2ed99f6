from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.pipeline.reporting.conftest import decided
from utility_calibration.metrics.registry import metric
from utility_calibration.pipeline.reporting import formats
from utility_calibration.pipeline.reporting.names import METHODS
from utility_calibration.pipeline.reporting.page import SHOWN_BY, templates
from utility_calibration.pipeline.reporting.tables import ResultTable, TableSpec
from utility_calibration.pipeline.reporting.write import print_tables

PAPER_METRICS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")


def page_table(table: ResultTable) -> str:
    """The table as the page has it, a line per row."""
    parts: Any = templates().get_template("parts.html").make_module(SHOWN_BY)
    return re.sub(r"\n(?!<tr)", " ", str(parts.results_table(table, drawn=set())))


def cell(mean: float, two_se: float, **more: Any) -> dict[str, Any]:
    """A decision's numbers; the half-width is twice the standard errors, the floor is the mean."""
    return {"mean": mean, "two_se": two_se, "half_width": 2 * two_se, "not_worse": True} | more


def error(mean: float, two_se: float, **more: Any) -> dict[str, Any]:
    floor = {"floor_mean": mean / 2, "floor_q95": mean, "beyond_floor": False}
    return cell(mean, two_se, **floor | more)


COLUMNS = {
    "accuracy": {
        "uncalibrated": cell(0.945, 0.002),
        "temperature": cell(0.945, 0.002),
        "vector": cell(0.941, 0.002),
    },
    "tce_bin": {
        "uncalibrated": error(0.0364, 0.0041, not_worse=False),
        "temperature": error(0.0213, 0.0008, not_worse=False, beyond_floor=True),
        "vector": error(0.01584, 0.0010),
    },
}
SMALL = TableSpec("b", "B & co_1", ("accuracy", "tce_bin"))


def test_cells_beyond_their_own_floor_are_marked_in_every_format() -> None:
    table = ResultTable.of(decided(COLUMNS), SMALL)
    texts = {
        "latex": (formats.latex(table), r"^{\dagger}$"),
        "markdown": (formats.markdown(table).split("\n\n")[1], "†"),
        "html": (page_table(table), "†</sup>"),
        "terminal": (printed([table], 200).split("†: beyond")[0], "†"),
    }
    for name, (text, mark) in texts.items():
        (line,) = [line for line in text.splitlines() if mark in line]
        assert "Temp" in line, name


@pytest.mark.parametrize(
    ("look", "mean", "floor", "scale"),
    [("default", ".0213", ".0213", ""), ("paper", "21.3", "21.3", "×10³")],
)
def test_numbers_are_those_of_the_sentences_and_of_the_papers_tables_in_its_look(
    look, mean, floor, scale
) -> None:
    table = ResultTable.of(decided(COLUMNS), replace(SMALL, look=look))
    (_, column), (_, cells) = table.columns, table.rows[1]
    assert (cells[1].mean, column.floor, column.metric.scale) == (mean, floor, scale)
    texts = [formats.markdown(table), page_table(table), printed([table], 99)]
    assert ["×10" in text for text in texts] == 3 * [bool(scale)]
    assert (r"\times 10" in formats.latex(table)) == bool(scale)


def test_a_mark_below_the_last_rows_floor_names_its_own_floor() -> None:
    columns = {"tce_bin": {
        "temperature": error(0.0364, 0.004),
        "isotonic": error(0.0266, 0.001, floor_q95=0.0201, beyond_floor=True),
    }}  # fmt: skip
    table = ResultTable.of(decided(columns), SMALL)
    notes = {method: cell.note for method, (cell,) in table.rows}
    assert notes == {"temperature": "", "isotonic": "own floor .0201"}
    assert r"(\mbox{own floor }.0201)$" in formats.latex(table)


def printed(tables, width: int, wide: bool = False) -> str:
    stream = io.StringIO()
    print_tables(tables, Console(file=stream, width=width), wide)
    return stream.getvalue()


def test_a_terminal_shows_the_columns_that_fit_first_those_of_the_verdict() -> None:
    values = {key: dict.fromkeys(list(METHODS)[:3], error(0.0123, 0.002)) for key in PAPER_METRICS}
    table = ResultTable.of(decided(values), replace(SMALL, metrics=PAPER_METRICS))
    narrow = printed([table], 80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "4 more columns are in the table's files." in " ".join(narrow.split())
    wide = printed([table], 80, wide=True)
    assert all(metric(key).text in wide for key in PAPER_METRICS)
