"""Tables: their scale, which floor a mark is of, and which columns a terminal has room for."""

import io
import math
import re
from typing import Any

import pytest
from rich.console import Console

from tests.pipeline.reporting.conftest import decided
from utility_calibration.metrics.registry import metric
from utility_calibration.pipeline.reporting import formats
from utility_calibration.pipeline.reporting.names import METHODS
from utility_calibration.pipeline.reporting.table_notes import remarks_of
from utility_calibration.pipeline.reporting.tables import ResultTable, TableSpec
from utility_calibration.pipeline.reporting.write import print_tables

PAPER_METRICS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")


def error(mean: float, **more: Any) -> dict[str, Any]:
    floor = {"floor_mean": mean / 2, "floor_q95": mean, "beyond_floor": False}
    return {"mean": mean, "two_se": 0.002, "half_width": 0.004, **floor, **more}


def table_of(columns: Any, metrics: Any, **look: Any) -> ResultTable:
    return ResultTable.of(decided(columns), TableSpec("b", "B & co_1", metrics, **look))


def printed(table: ResultTable, wide: bool = False) -> str:
    stream = io.StringIO()
    print_tables([table], Console(file=stream, width=80), wide)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("look", "mean", "scale"), [("default", ".0213", ""), ("paper", "21.3", "×10³")]
)
def test_numbers_are_those_of_the_sentences_and_of_the_papers_tables_in_its_look(look, mean, scale):
    table = table_of({"tce_bin": {"temperature": error(0.0213)}}, ("tce_bin",), look=look)
    (column,) = table.columns
    assert column.metric.scale == scale
    assert column.text(0.0213) == mean
    texts = [formats.markdown(table), formats.latex(table), printed(table)]
    assert [re.search("(×|times )10", text) is not None for text in texts] == 3 * [bool(scale)]


def test_every_method_has_its_own_floor_which_decides_its_mark() -> None:
    beyond = error(0.0266, floor_q95=0.0201, beyond_floor=True)
    columns = {"tce_bin": {"temperature": error(0.0264, floor_q95=0.0312), "isotonic": beyond}}
    table = table_of(columns, ("tce_bin",))
    assert [row[1] for row in table.floors().rows] == [".0312", ".0201"]
    assert (
        "†" in table.lines(formats.MARKDOWN)[1][1][1] and len(table.lines(formats.MARKDOWN)[1]) == 2
    )
    assert ".0201" in formats.markdown(table)


@pytest.mark.parametrize("clusters", [0, 1234])
def test_the_notes_say_how_clusters_count_also_where_no_bound_is_known(clusters: int) -> None:
    decisions = decided({"brier": {"temperature": error(0.3)}}, clusters=clusters)
    facts = {"calibrators": {}, "logits": {}, "evaluation": {"utility_batch": None}}
    assert [("1,234" in line) for line in remarks_of(facts, decisions)] == [True] * bool(clusters)


def test_a_table_without_floors_has_no_second_table() -> None:
    nothing = error(0.0266, floor_q95=math.nan, floor_mean=math.nan, beyond_floor=None)
    table = table_of({"tce_bin": {"temperature": nothing}}, ("tce_bin",))
    assert not table.has_floor and formats.markdown(table).count("###") == 1


def test_a_terminal_shows_the_columns_that_fit_first_those_of_the_verdict() -> None:
    columns = {key: dict.fromkeys(list(METHODS)[:3], error(0.0123)) for key in PAPER_METRICS}
    narrow, wide = (printed(table_of(columns, PAPER_METRICS), wide) for wide in (False, True))
    assert max(map(len, narrow.splitlines())) <= 80 and "4 more" in narrow
    assert all(metric(key).text in narrow for key in PAPER_METRICS[-3:])
    assert all(metric(key).text in wide for key in PAPER_METRICS)
