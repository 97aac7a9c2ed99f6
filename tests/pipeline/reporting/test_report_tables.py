from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from metrics.registry import metric
from pipeline.reporting import formats
from pipeline.reporting.names import METHODS
from pipeline.reporting.page import SHOWN_BY, templates
from pipeline.reporting.tables import ResultTable, TableSpec
from pipeline.reporting.write import print_tables
from pipeline.scoring.decisions import Decisions
from tests.pipeline.reporting.conftest import decided

PAPER_METRICS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")


def page_table(table: ResultTable) -> str:
    """The table as the page has it, a line per row."""
    parts: Any = templates().get_template("parts.html").make_module(SHOWN_BY)
    return re.sub(r"\n(?!<tr)", " ", str(parts.results_table(table, drawn=set())))


def decisions_of(
    means: dict[tuple[str, str], tuple[float, float]], worse: tuple[tuple[str, str], ...] = ()
) -> Decisions:
    """Decisions with the given means and 2 standard errors; half-widths are twice the latter."""
    columns: dict[str, dict[str, Any]] = {}
    for (method, key), (mean, two_se) in means.items():
        floor = metric(key).has_floor
        columns.setdefault(key, {})[method] = {
            "mean": mean,
            "two_se": two_se,
            "half_width": 2 * two_se,
            "floor_mean": mean / 2 if floor else math.nan,
            "floor_q95": mean if floor else math.nan,
            "beyond_floor": False if floor else None,
            "not_worse": (method, key) not in worse,
        }
    return decided(columns)


VALUES = {
    ("uncalibrated", "accuracy"): (0.945, 0.002),
    ("temperature", "accuracy"): (0.945, 0.002),
    ("vector", "accuracy"): (0.941, 0.002),
    ("uncalibrated", "tce_bin"): (0.0364, 0.0041),
    ("temperature", "tce_bin"): (0.0213, 0.0008),
    ("vector", "tce_bin"): (0.01584, 0.0010),
}


@pytest.fixture
def small() -> Decisions:
    return decisions_of(VALUES, (("uncalibrated", "tce_bin"), ("temperature", "tce_bin")))


def changed(decisions: Decisions, method: str, key: str, **values: Any) -> Decisions:
    row = replace(decisions.rows[method, key], **values)
    return replace(decisions, rows={**decisions.rows, (method, key): row})


SMALL = TableSpec("b", "B & co_1", ("accuracy", "tce_bin"))


def test_the_papers_look_scales_rounds_and_marks_the_largest_accuracy_and_least_error(
    small,
) -> None:
    rows = ResultTable.of(small, replace(SMALL, look="paper")).rows
    cells = {m: [(c.mean, c.spread, c.best) for c in row] for m, row in rows}
    assert cells == {
        "uncalibrated": [("94.50", "0.20", True), ("36.4", "4.1", False)],
        "temperature": [("94.50", "0.20", True), ("21.3", "0.8", False)],
        "vector": [("94.10", "0.20", False), ("15.8", "1.0", True)],
    }


def test_the_default_look_has_intervals_and_marks_all_that_may_be_the_best(small) -> None:
    accuracy, error = (list(c.cells.values()) for c in ResultTable.of(small, SMALL).columns)
    assert error[2].spread == "2.0"  # the half width, twice the standard errors here
    assert [cell.best for cell in error] == [False, False, True]
    assert all(cell.best for cell in accuracy)  # no test finds any of them worse
    untested = replace(small, test="")
    assert not any("no test finds" in note for note in ResultTable.of(untested, SMALL).notes)


def test_cells_beyond_their_own_floor_are_marked_in_every_format(small) -> None:
    table = ResultTable.of(changed(small, "temperature", "tce_bin", beyond_floor=True), SMALL)
    texts = {
        "latex": (formats.latex(table), r"^{\dagger}$"),
        "markdown": (formats.markdown(table).split("\n\n")[1], "†"),
        "html": (page_table(table), "†</sup>"),
        "terminal": (printed([table], 200).split("†: beyond")[0], "†"),
    }
    for name, (text, mark) in texts.items():
        (line,) = [line for line in text.splitlines() if mark in line]
        assert "Temp" in line, name


def test_an_infinite_likelihood_is_told_beside_the_floored_one() -> None:
    decisions = decisions_of({("isotonic", "nll"): (0.61, 0.01), ("vector", "nll"): (0.6, 0.01)})
    decisions = changed(decisions, "isotonic", "nll", zero_likelihood=3.4)
    table = ResultTable.of(decisions, TableSpec("b", "B", ("nll",)))
    cells = table.columns[0].cells
    assert formats.cell_text(cells["isotonic"]).endswith(" (∞, 3.4)")
    assert formats.cell_text(cells["vector"]).endswith("2.0")
    assert r"(\infty, 3.4)" in formats.latex(table)
    assert any("∞: infinite NLL" in note for note in table.notes)


def test_certificates_stand_in_the_notes_rounded_up(small) -> None:
    uppers = {"uncalibrated": 0.0601, "vector": 0.0321}
    table = ResultTable.of(replace(small, users=uppers), SMALL)
    assert any(
        note.endswith("Uncalibrated .061, Temp. Scaling –, Vector Scaling .033.")
        and "confidence" not in note  # a mean over splits of bounds is no bound of one thing
        for note in table.notes
    )


def printed(tables, width: int, wide: bool = False) -> str:
    stream = io.StringIO()
    print_tables(tables, Console(file=stream, width=width), wide)
    return stream.getvalue()


def test_a_terminal_shows_the_columns_that_fit_first_those_of_the_verdict() -> None:
    values = {(m, k): (0.0123, 0.002) for m in list(METHODS)[:3] for k in PAPER_METRICS}
    table = ResultTable.of(decisions_of(values), replace(SMALL, metrics=PAPER_METRICS))
    narrow = printed([table], 80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "3 more columns are in the table's files." in " ".join(narrow.split())
    wide = printed([table], 80, wide=True)
    assert all(metric(key).text in wide for key in PAPER_METRICS)
