from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from metrics.registry import metric
from pipeline.reporting import table_formats
from pipeline.reporting.collect import SUMMARY_COLUMNS, Runs, summarise
from pipeline.reporting.names import METHODS, method_name, ordered
from pipeline.reporting.tables import (
    IncompleteResults,
    TableSpec,
    build_table,
    decimals,
    write_tables,
)
from pipeline.reporting.terminal import print_tables

PAPER_METRICS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")


def summary_of(values: dict[tuple[str, str], tuple[float, float]]) -> pd.DataFrame:
    rows = [("b", m, k, mean, se, 10, mean / 2, mean) for (m, k), (mean, se) in values.items()]
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))


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


def test_cells_are_scaled_and_rounded_to_two_digits_of_the_median_spread(small) -> None:
    table = build_table(small, SMALL)
    cells = {row.name: [(c.mean, c.spread) for c in row.cells] for row in table.rows}
    assert cells["Uncalibrated"] == [("94.50", "0.20"), ("36.4", "4.1")]
    assert cells["Vector Scaling"] == [("94.10", "0.20"), ("15.8", "1.0")]


def test_best_is_the_largest_accuracy_and_the_smallest_error_ties_included(small) -> None:
    table = build_table(small, SMALL)
    best = {row.name: [c.best for c in row.cells] for row in table.rows}
    assert best["Uncalibrated"] == [True, False]
    assert best["Temp. Scaling"] == [True, False]
    assert best["Vector Scaling"] == [False, True]


def test_the_noise_floor_is_temperature_scalings_and_never_best(small) -> None:
    floor = build_table(small, SMALL).floor
    assert floor is not None
    assert [(c.mean, c.spread, c.best) for c in floor.cells] == [
        ("47.25", "94.50", False),
        ("10.7", "21.3", False),
    ]


@pytest.mark.parametrize(("worst", "expected"), [(0.0213, ("TCE_bin",)), (0.0364, ())])
def test_columns_in_which_no_method_exceeds_the_noise_are_named(worst, expected) -> None:
    """The quantile of `summary_of` is temperature scaling's mean; accuracies do not count."""
    values = {(m, "accuracy"): (0.9, 0.002) for m in SMALL.methods}
    values |= {(m, "tce_bin"): (0.0213, 0.001) for m in SMALL.methods}
    values["uncalibrated", "tce_bin"] = (worst, 0.004)
    table = build_table(summary_of(values), SMALL)
    assert table.within_floor == expected
    assert any("No method exceeds" in note for note in table.notes) == bool(expected)


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
    table = build_table(summary, TableSpec("b", "B", ("brier",), ("temperature",)))
    assert table_formats.plain_cell(table.rows[0].cells[0]) == "8.12"
    assert "±" not in table.spread_note


def test_infinity_is_shown_and_never_best() -> None:
    values = {("isotonic", "nll"): (float("inf"), float("nan")), ("vector", "nll"): (0.2, 0.01)}
    table = build_table(summary_of(values), TableSpec("b", "B", ("nll",), ("isotonic", "vector")))
    assert [row.cells[0].best for row in table.rows] == [False, True]
    assert r"$\infty$" in table_formats.latex(table)


def test_a_metric_that_no_method_has_gets_no_column(small) -> None:
    spec = TableSpec("b", "B", ("accuracy", "u_w2v"), ("uncalibrated", "vector"))
    assert [m.key for m in build_table(small, spec).metrics] == ["accuracy"]


def test_a_metric_that_one_method_lacks_is_named(small) -> None:
    short = small[~((small["method"] == "vector") & (small["metric"] == "tce_bin"))]
    with pytest.raises(IncompleteResults, match="b: vector has no value of tce_bin; evaluate it"):
        build_table(short, SMALL)


@pytest.fixture
def written(write_runs, tmp_path: Path) -> dict[str, Path]:
    units = Runs(write_runs()).read_all("cifar10_repvgg", METHODS, range(4))
    spec = TableSpec("cifar10_repvgg", "CIFAR-10, RepVGG-A0", PAPER_METRICS, tuple(METHODS))
    table_one = TableSpec(
        "cifar10_repvgg", "Table 1", ("brier", "cwe_bin"), tuple(METHODS), "cifar10_table1"
    )
    paths = write_tables(summarise(units), [spec, table_one], tmp_path / "tables")
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


def test_latex_environments_and_braces_are_balanced(written) -> None:
    for name in ("cifar10_repvgg.tex", "cifar10_table1.tex"):
        text = re.sub(r"\\[{}%]", "", re.sub(r"(?m)(?<!\\)%.*$", "", written[name].read_text()))
        opened = re.findall(r"\\(begin|end)\{(\w+\*?)\}", text)
        stack: list[str] = []
        for kind, environment in opened:
            if kind == "begin":
                stack.append(environment)
            else:
                assert stack.pop() == environment
        assert not stack
        assert text.count("{") == text.count("}")
        assert text.isascii()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("packages", ["booktabs", "booktabs,amsmath,bm,graphicx"])
def test_latex_compiles(written, tmp_path: Path, packages: str) -> None:
    inputs = "\n".join(rf"\input{{{p}}}" for name, p in written.items() if name.endswith(".tex"))
    document = tmp_path / "document.tex"
    document.write_text(
        rf"\documentclass{{article}}\usepackage{{{packages}}}"
        rf"\begin{{document}}{inputs}\end{{document}}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_special_characters_are_escaped(small) -> None:
    table = build_table(small, SMALL)
    assert r"B \& co\_1:" in table_formats.latex(table)
    assert "<h" not in table_formats.html(table)


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


def test_csv_keeps_full_precision_and_order(written, write_runs) -> None:
    rows = list(csv.DictReader(written["cifar10_repvgg.csv"].open()))
    assert list(rows[0]) == list(SUMMARY_COLUMNS[1:])
    assert [row["method"] for row in rows[:: len(PAPER_METRICS)]] == list(METHODS)
    assert [row["metric"] for row in rows[: len(PAPER_METRICS)]] == list(PAPER_METRICS)
    units = Runs(write_runs()).read_all("cifar10_repvgg", METHODS, range(4))
    values = summarise(units).set_index(["method", "metric"])
    for row in rows:
        expected = values.loc[(row["method"], row["metric"])]
        assert float(row["mean"]) == expected["mean"]
        assert float(row["two_se"]) == expected["two_se"]
        assert float(row["floor_q95"]) == expected["floor_q95"]


def test_terminal_without_a_terminal_folds_no_cell(small) -> None:
    stream = io.StringIO()
    table = build_table(small, SMALL)
    print_tables([table, table], Console(file=stream, width=20))
    text = stream.getvalue()
    assert text.count("Noise floor:") == 1
    assert re.search(r"Vector Scaling +94\.10 ± 0\.20 +\*15\.8 ± 1\.0", text)
    assert re.search(r"Noise floor +47\.25 \[94\.50\] +10\.7 \[21\.3\]", text)


def test_names_of_variants_and_of_unknown_keys() -> None:
    assert method_name("isotonic_raw") == "IR (unnormalised)"
    assert method_name("dirichlet_logits") == "Dirichlet (on logits)"
    assert method_name("my_method") == "My method"
    assert metric("u_mine").latex == r"\texttt{u\_mine}"
    assert ordered(["zeta", "patching", "isotonic_raw", "isotonic", "uncalibrated"]) == [
        "uncalibrated",
        "isotonic",
        "isotonic_raw",
        "patching",
        "zeta",
    ]
