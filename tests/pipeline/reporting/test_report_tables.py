from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from metrics.registry import metric
from pipeline.reporting import table_formats
from pipeline.reporting.collect import summarise
from pipeline.reporting.headings import html_heading, latex_heading
from pipeline.reporting.names import METHODS, method_name, ordered
from pipeline.reporting.report_page import SHOWN_BY, templates
from pipeline.reporting.table_model import ResultTable
from pipeline.reporting.tables import (
    CSV_COLUMNS,
    IncompleteResults,
    TableSpec,
    build_table,
    decimals,
    long_form,
    remarks_of,
    write_tables,
)
from pipeline.reporting.terminal import print_tables

PAPER_METRICS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")


def page_table(table: ResultTable) -> str:
    """The table as the page has it, a line per row."""
    parts: Any = templates().get_template("parts.html").make_module(SHOWN_BY)
    return re.sub(r"\n(?!<tr)", " ", str(parts.results_table(table, drawn=set())))


def summary_of(
    values: dict[tuple[str, str], tuple[float, float]], beyond: tuple[tuple[str, str], ...] = ()
) -> pd.DataFrame:
    """Ten splits with the given means and 2 standard errors; floors at half and all of the mean."""
    rows = []
    for place, ((method, key), (mean, two_se)) in enumerate(values.items()):
        noise = np.random.default_rng(place).normal(size=10)
        noise = (noise - noise.mean()) / noise.std(ddof=1) * np.sqrt(10) / 2
        row = dict.fromkeys(CSV_COLUMNS, math.nan) | {
            "benchmark": "b",
            "method": method,
            "metric": key,
            "mean": mean,
            "two_se": two_se,
            "half_width": 2 * two_se,
            "interval": "corrected",
            "splits": 10,
            "floor_mean": mean / 2,
            "floor_q95": mean,
            "p_value": 0.01 if (method, key) in beyond else 0.5,
            "beyond_floor": (method, key) in beyond if metric(key).has_floor else None,
            "test_points": 3000,
            "test_share": 0.3,
            "values": tuple(mean + np.nan_to_num(two_se) * noise),
        }
        rows.append(row)
    return pd.DataFrame(rows)


@pytest.fixture
def small() -> pd.DataFrame:
    return summary_of(
        {
            ("uncalibrated", "accuracy"): (0.945, 0.002),
            ("temperature", "accuracy"): (0.945, 0.002),
            ("vector", "accuracy"): (0.941, 0.002),
            ("uncalibrated", "tce_bin"): (0.0364, 0.0041),
            ("temperature", "tce_bin"): (0.0213, 0.0008),
            ("vector", "tce_bin"): (0.01584, 0.0010),
        }
    )


SMALL = TableSpec(
    "b", "B & co_1", ("accuracy", "tce_bin"), ("uncalibrated", "temperature", "vector")
)
PAPER = replace(SMALL, look="paper")


def test_cells_are_scaled_and_rounded_to_two_digits_of_the_median_spread(small) -> None:
    table = build_table(small, PAPER)
    cells = {row.name: [(c.mean, c.spread) for c in row.cells] for row in table.rows}
    assert cells["Uncalibrated"] == [("94.50", "0.20"), ("36.4", "4.1")]
    assert cells["Vector Scaling"] == [("94.10", "0.20"), ("15.8", "1.0")]


def test_the_papers_best_is_the_largest_accuracy_and_the_smallest_error(small) -> None:
    table = build_table(small, PAPER)
    best = {row.name: [c.best for c in row.cells] for row in table.rows}
    assert best["Uncalibrated"] == [True, False]
    assert best["Temp. Scaling"] == [True, False]
    assert best["Vector Scaling"] == [False, True]


def test_the_default_look_has_intervals_and_marks_all_that_may_be_the_best(small) -> None:
    table = build_table(small, SMALL)
    cells = {row.key: row.cells[1] for row in table.rows}
    assert cells["vector"].spread == "2.0"  # the half width, twice the standard errors here
    assert [cell.best for cell in cells.values()] == [False, False, True]
    assert all(row.cells[0].best for row in table.rows)  # accuracies within each other's noise
    assert "not significantly worse than the best" in table.notes[0]
    assert "Nadeau & Bengio" in table.notes[0]


MARKS = (("uncalibrated", "tce_bin"), ("temperature", "tce_bin"))


def test_cells_beyond_their_own_floor_are_marked_in_every_format(small) -> None:
    small.loc[[(m, k) in MARKS for m, k in zip(small.method, small.metric)], "beyond_floor"] = True
    table = build_table(small, SMALL)
    assert [[cell.beyond for cell in row.cells] for row in table.rows] == [
        [None, True],
        [None, True],
        [None, False],
    ]
    stream = io.StringIO()
    print_tables([table], Console(file=stream, width=200))
    texts = {
        "latex": (table_formats.latex(table), r"^{\dagger}$"),
        "markdown": (table_formats.markdown(table).split("\n\n")[1], "†"),
        "html": (page_table(table), "†</sup>"),
        "terminal": (stream.getvalue().split("†: beyond")[0], "†"),
        "csv": (long_form(table).to_csv(index=False), "True"),
    }
    for name, (text, mark) in texts.items():
        lines = [line for line in text.splitlines() if mark in line]
        assert any("ncalibrated" in line for line in lines), name
        assert not any("ector" in line.partition("not_worse")[0] and "†" in line for line in lines)
    assert page_table(table).count(' beyond">') == 2


@pytest.mark.parametrize("beyond", [(), MARKS])
def test_columns_in_which_no_method_is_beyond_its_floor_are_named(beyond) -> None:
    values = {(m, k): (0.03, 0.001) for m in SMALL.methods for k in ("accuracy", "tce_bin")}
    table = build_table(summary_of(values, beyond), SMALL)
    named = [note for note in table.notes if "No method is beyond its noise floor" in note]
    assert len(named) == (not beyond)
    assert all("in TCE_bin:" in note for note in named)


def test_an_infinite_likelihood_is_told_beside_the_floored_one() -> None:
    summary = summary_of({("isotonic", "nll"): (0.61, 0.01), ("vector", "nll"): (0.6, 0.01)})
    summary["zero_likelihood"] = [3.4, 0.0]
    table = build_table(summary, TableSpec("b", "B", ("nll",), ("isotonic", "vector")))
    assert table_formats.plain_cell(table.rows[0].cells[0]).endswith(" (∞, 3.4)")
    assert table_formats.plain_cell(table.rows[1].cells[0]).endswith("2.0")
    assert r"(\infty, 3.4)" in table_formats.latex(table)
    assert any("without this it is infinite" in note for note in table.notes)


def test_certificates_stand_in_the_notes_rounded_up_and_in_the_csv(small) -> None:
    small.loc[small["method"] == "vector", "upper"] = 0.0321
    table = build_table(small, SMALL, {"uncalibrated": 0.0601, "vector": 0.0321})
    assert any(
        note.endswith("Uncalibrated .061, Temp. Scaling –, Vector Scaling .033.")
        and "confidence" not in note  # a mean over splits of bounds is no bound of one thing
        for note in table.notes
    )
    numbers = long_form(table).set_index(["method", "metric"])
    assert numbers.loc[("vector", "tce_bin"), "upper"] == 0.0321
    assert np.isnan(numbers.loc[("temperature", "tce_bin"), "upper"])


def test_a_marked_cell_may_be_below_the_floor_shown_and_the_page_has_its_own(small) -> None:
    """Issue 34: the mark is by the method's own floor, the last row is temperature scaling's."""
    chosen = (small["method"] == "vector") & (small["metric"] == "tce_bin")
    small.loc[chosen, ["beyond_floor", "floor_mean", "floor_q95"]] = True, 0.011, 0.0125
    table = build_table(small, SMALL)
    cell = table.rows[2].cells[1]
    assert cell.beyond and float(cell.mean) < float(table.floor.cells[1].mean)
    assert 'title="own noise floor: 12.5"' in page_table(table)
    assert long_form(table).set_index(["method", "metric"]).loc[("vector", "tce_bin")][
        "floor_q95"
    ] == pytest.approx(0.0125)
    assert any("each method's own may be smaller or larger" in note for note in table.notes)


def test_rows_that_do_not_sum_to_one_have_no_floor_no_mark_and_no_certificate(small) -> None:
    raw = small["method"] == "uncalibrated"
    small.loc[raw, ["floor_mean", "floor_q95", "p_value"]] = math.nan
    small.loc[raw, "beyond_floor"] = None
    table = build_table(small, SMALL, {"temperature": 0.02, "vector": 0.03})
    assert [row.cells[1].beyond for row in table.rows] == [None, False, False]
    notes = " ".join(table.notes)
    assert "Uncalibrated: no noise floor, no † and no certificate (–), because" in notes
    assert "Uncalibrated –, Temp. Scaling .020" in notes
    assert "No method is beyond its noise floor in TCE_bin" in notes
    assert '<span class="p"> –</span>' in page_table(table)


def test_decimals() -> None:
    assert decimals([30.0], [4.1]) == 1
    assert decimals([30.0], [41.0]) == 0
    assert decimals([30.0], [410.0]) == 0
    assert decimals([1.5], [0.009]) == 3
    assert decimals([94.5], [float("nan")]) == 1
    assert decimals([0.0], [0.0]) == 2


def test_one_split_has_no_spread() -> None:
    summary = summary_of({("temperature", "brier"): (0.0812, float("nan"))})
    summary["splits"] = 1
    summary["values"] = [(0.0812,)]
    table = build_table(summary, TableSpec("b", "B", ("brier",), ("temperature",)))
    assert table_formats.plain_cell(table.rows[0].cells[0]) == "8.12"
    assert "±" not in table.spread_note
    assert table.rows[0].cells[0].best


def test_a_metric_that_one_method_lacks_is_named(small) -> None:
    short = small[~((small["method"] == "vector") & (small["metric"] == "tce_bin"))]
    with pytest.raises(IncompleteResults, match="b: vector has no value of tce_bin; evaluate it"):
        build_table(short, SMALL)


@pytest.fixture
def written(write_scores, tmp_path: Path) -> dict[str, Path]:
    scores = write_scores()
    spec = TableSpec("cifar10_repvgg", "CIFAR-10, RepVGG-A0", PAPER_METRICS, tuple(METHODS))
    table_one = TableSpec(
        "cifar10_repvgg", "Table 1", ("brier", "cwe_bin"), tuple(METHODS), "cifar10_table1"
    )
    tables = [build_table(summarise(scores), one) for one in (spec, table_one)]
    paths = write_tables(tables, tmp_path / "tables")
    return {path.name: path for path in paths}


def test_latex_is_laid_out_as_in_the_paper(written) -> None:
    text = written["cifar10_repvgg.tex"].read_text()
    assert r"Brier Score ($\times 10^{2}$)" in text
    assert r"$\mathcal{U}_{\mathrm{CWE}}$ ($\times 10^{4}$)" in text
    body = [line.strip() for line in text.splitlines() if line.rstrip().endswith(r"\\")]
    assert [line.split(" & ")[0] for line in body] == [
        "Method",
        *METHODS.values(),
        "Noise floor",
    ]
    assert {line.count(" & ") for line in body} == {len(PAPER_METRICS)}
    columns = re.search(r"\\begin\{tabular\}\{(.*)\}\n", text)
    assert columns is not None
    assert len(re.sub(r"@\{[^@]*?\}+", "", columns[1])) == len(PAPER_METRICS) + 1
    assert text.index(r"Patching &") < text.rindex(r"\midrule") < text.index("Noise floor &")
    assert text.count(r"\bm{") >= len(PAPER_METRICS)


def test_columns_that_the_paper_lacks_get_a_latex_table_of_their_own_with_a_short_caption() -> None:
    keys = ("brier", "nll", "u_cwe", "u_lin_median")
    values = {(m, k): (0.0123, 0.002) for m in SMALL.methods for k in keys}
    first, second = table_formats.latex(
        build_table(summary_of(values), replace(SMALL, metrics=keys))
    ).split(r"\begin{table*}")[1:]
    assert "Brier" in first and "NLL" not in first and r"\label{tab:b}" in first
    assert "NLL" in second and "median" in second and r"\label{tab:b_more}" in second
    for part in (first, second):
        caption = re.search(r"\\caption\{(.*)\}\n", part)
        assert caption is not None and len(caption[1]) < 3 * 95


def test_special_characters_are_escaped(small) -> None:
    table = build_table(small, SMALL)
    assert r"B \& co\_1." in table_formats.latex(table)
    assert "<h" not in page_table(table)


def test_markdown_has_the_same_cells(written) -> None:
    lines = written["cifar10_repvgg.md"].read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {row.count("|") for row in rows} == {len(PAPER_METRICS) + 2}
    assert rows[0].startswith("| Method | Accuracy ×10² | Brier score ×10² | CWE<sup>bin</sup>")
    assert rows[-1].startswith("| *Noise floor* |")
    latex = written["cifar10_repvgg.tex"].read_text()
    means = [cell.strip(" *").split(" ± ")[0] for cell in rows[2].split("|")[2:-1]]
    row = next(line for line in latex.splitlines() if line.strip().startswith("Uncalibrated"))
    assert means == re.findall(r"([\d.]+) \\pm", row)


def test_csv_has_seven_digits_and_the_order_of_the_table(written, write_scores) -> None:
    rows = list(csv.DictReader(written["cifar10_repvgg.csv"].open()))
    assert list(rows[0]) == list(CSV_COLUMNS)
    assert [row["method"] for row in rows[:: len(PAPER_METRICS)]] == list(METHODS)
    assert [row["metric"] for row in rows[: len(PAPER_METRICS)]] == list(PAPER_METRICS)
    values = summarise(write_scores()).set_index(["method", "metric"])
    for row in rows:
        expected = values.loc[(row["method"], row["metric"])]
        assert float(row["mean"]) == pytest.approx(expected["mean"], rel=1e-6)
        assert row["two_se"] == f"{expected['two_se']:.7g}"


def printed(tables, width: int, wide: bool = False, terminal: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    print_tables(tables, console, wide)
    return stream.getvalue()


def test_a_table_has_the_columns_that_fit_first_those_of_the_verdict(small) -> None:
    values = {(m, k): (0.0123, 0.002) for m in SMALL.methods for k in PAPER_METRICS}
    table = build_table(summary_of(values), replace(SMALL, metrics=PAPER_METRICS))
    narrow = printed([table, table], 80)
    assert max(map(len, narrow.splitlines())) <= 80
    for shown in ("Brier", "U_CWE", "U_topK", "U_dcg"):
        assert re.search(rf"^ .*{shown}", narrow, re.MULTILINE)
    assert "Not shown here: Accuracy, CWE_bin, TCE_bin." in " ".join(narrow.split())
    notes = narrow[narrow.rindex("Mean over") :].splitlines()
    assert 2 <= len(notes) <= 5 and narrow.count("†: beyond") == 1
    wide = printed([table], 80, wide=True)
    assert all(metric(key).text in wide for key in PAPER_METRICS)
    assert "Not shown" not in wide


def test_stars_stand_for_bold_where_the_output_is_no_terminal(small) -> None:
    text = printed([build_table(small, SMALL)], 80)
    assert re.search(r"Vector Scaling +\*94\.10 ± 0\.40 +\*15\.8 ± 2\.0", text)
    assert re.search(r"Noise floor +94\.50 +21\.3", text)
    assert "*" not in printed([build_table(small, SMALL)], 80, terminal=True)


def test_a_patching_without_patches_says_in_how_many_splits_and_what_it_equals() -> None:
    facts = {"evaluation": {"utility_batch": None}, "calibrators": {
        "vector": {"config": {}, "patches": []},
        "logit_shift": {"config": {"start": "temperature"}, "patches": [0, 3, 0]},
    }}  # fmt: skip
    assert remarks_of(facts, ["vector", "logit_shift"]) == (
        "Logit-shift patching: 0 patches in 2 of 3 splits, where it equals temperature scaling.",
    )


def test_names_of_variants_and_of_unknown_keys() -> None:
    assert method_name("isotonic_raw") == "IR (unnormalised)"
    assert method_name("dirichlet_logits") == "Dirichlet (on logits)"
    assert method_name("my_method") == "My method"
    assert latex_heading(metric("u_mine")) == r"\texttt{u\_mine}"
    assert html_heading(metric("u_mine")) == "<code>u_mine</code>"
    assert latex_heading(metric("u_lin_q95")) == r"$\mathcal{U}_{\mathrm{lin}}$ 95 \%"
    assert html_heading(metric("u_lin_q95")) == "U<sub>lin</sub> 95 %"
    assert latex_heading(metric("cwe_bin")) == r"$\mathrm{CWE}^{\mathrm{bin}}$"
    assert ordered(["zeta", "patching", "isotonic_raw", "isotonic", "uncalibrated"]) == [
        "uncalibrated",
        "isotonic",
        "isotonic_raw",
        "patching",
        "zeta",
    ]
