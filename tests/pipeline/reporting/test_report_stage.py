"""The report stage on scores that a fixture writes: seeded numbers around the printed values."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import escape

from metrics.registry import METRICS, utility_metric
from pipeline.harness.artifacts import read_json
from pipeline.report import run_report, table_specs
from pipeline.reporting.collect import MissingScores
from tests.pipeline.reporting import conftest as made_up
from tests.pipeline.reporting.conftest import request_of

ROOT = Path(__file__).parents[3]
FEW = ("uncalibrated", "temperature", "patching")


@pytest.fixture
def without_figures(monkeypatch) -> None:
    """Drawing takes most of the time of a report."""
    monkeypatch.setattr("pipeline.report.draw_all", lambda drawings: [])


def files_of(results: Path) -> dict[str, bytes]:
    paths = [p for p in results.rglob("*") if p.is_file() and "scores" not in p.parts]
    return {p.relative_to(results).as_posix(): p.read_bytes() for p in paths}


def test_report_of_the_default_suite(write_scores, tmp_path: Path, capsys, monkeypatch) -> None:
    """From results/scores alone; another calibrator's rows there do not come into the report.

    One entry in the registry is enough for a metric to be in every format.
    """
    monkeypatch.setitem(METRICS, "u_first", utility_metric("u_first", "first", None))
    monkeypatch.setattr(made_up, "ALL_METRICS", [*made_up.ALL_METRICS, "u_first"])
    write_scores("digits", "yahoo", (*FEW, "isotonic_raw"), suite="digits", splits=2)
    request = request_of(tmp_path, "digits", suite="digits", splits=2, methods=FEW)
    run_report(request)
    results = tmp_path / "results"
    files = files_of(results)
    assert set(files) == {
        *(f"tables/digits.{kind}" for kind in ("tex", "md", "csv")),
        *(f"figures/ecdf_digits.{kind}" for kind in ("pdf", "svg", "png")),
        "metrics.json",
        "report.html",
        "report.md",
        "tables/digits_verdict.json",
    }
    printed = capsys.readouterr().out
    assert "Noise floor" in printed
    assert "digits.{tex,md,csv}" in printed
    for name, text in {
        "tables/digits.tex": r"$\mathcal{U}_{\mathrm{first}}$",
        "tables/digits.md": "U<sub>first</sub> ×10³",
        "tables/digits.csv": "\npatching,u_first,",
        "report.html": "U<sub>first</sub>",
        "tables/digits_verdict.json": '"u_first"',
    }.items():
        assert text in files[name].decode(), name
    assert "U_first" in printed
    page = files["report.html"].decode()
    assert "unnormalised" not in printed + page and b"isotonic_raw" not in files["metrics.json"]
    assert "10000 points, 10 classes, accuracy 94.40 %" in page
    assert "digits" in json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert str(tmp_path) not in page
    verdict = read_json(results / "tables" / "digits_verdict.json")
    assert verdict["verdict"] and verdict["summary"]
    for sentence in (verdict["headline"], *verdict["summary"]):
        assert sentence in " ".join(printed.split())
        assert str(escape(sentence)) in page
    run_report(request)
    assert files_of(results) == files


def test_fewer_tuning_runs_than_the_papers_are_told_in_the_table(write_scores, tmp_path) -> None:
    for extra, said in ((), ("Tuned with 8 runs for Dirichlet and 4 for patching; the paper: 80 "
                              "and 20 (tuning=paper).",)), (("tuning=paper",), ()):  # fmt: skip
        methods = ("dirichlet", "patching")
        scores = write_scores("digits", "yahoo", methods, suite="digits", extra=extra)
        (settings,) = request_of(tmp_path, "digits", suite="digits").benchmark_settings()
        (spec,) = table_specs(settings, scores, "digits", methods)
        assert spec.remarks == said


def test_the_vit_gets_table_one(write_scores, tmp_path) -> None:
    scores = write_scores("imagenet_vit", "imagenet_vit", FEW)
    (settings,) = request_of(tmp_path, "imagenet_vit", suite="imagenet").benchmark_settings()
    main, short = table_specs(settings, scores, "imagenet_vit", FEW)
    assert main.name == "imagenet_vit" and "u_w2v" in main.metrics
    assert short.name == "imagenet_vit_table1"
    assert tuple(short.metrics) == ("brier", "cwe_bin", "tce_bin", "u_comb")


@pytest.mark.usefixtures("without_figures")
def test_paper_benchmarks_are_compared_and_one_alone_leaves_the_page_of_the_suite(
    write_scores, tmp_path: Path, capsys
) -> None:
    for benchmark in ("cifar10_resnet", "cifar10_repvgg"):
        write_scores(benchmark, benchmark, FEW, splits=2, shift=0.1)
    both = ("suite.benchmarks=[cifar10_resnet,cifar10_repvgg]",)
    asked = {"splits": 2, "extra": both, "methods": FEW}
    run_report(request_of(tmp_path, "cifar10_resnet", "cifar10_repvgg", **asked))
    files = files_of(tmp_path / "results")
    assert {f"tables/comparison.{kind}" for kind in ("md", "csv")} <= set(files)
    assert "CIFAR-10 RepVGG-A0: " in capsys.readouterr().out
    assert b"Against the paper" in files["report.html"] and b"Who wins" in files["report.html"]
    run_report(request_of(tmp_path, "cifar10_resnet", **asked))
    after = files_of(tmp_path / "results")
    assert "report-cifar10_resnet.html" in after
    assert all(after[name] == files[name] for name in ("report.html", "metrics.json"))


@pytest.mark.usefixtures("without_figures")
def test_another_evaluation_has_files_of_its_own(write_scores, tmp_path: Path) -> None:
    other = ("evaluation=paper_batches",)
    write_scores("digits", "yahoo", FEW, suite="digits", splits=2, extra=other)
    run_report(request_of(tmp_path, "digits", suite="digits", splits=2, extra=other, methods=FEW))
    tables = tmp_path / "results" / "tables"
    assert "batches of 1000 test points" in (tables / "digits-paper_batches.md").read_text()
    assert not (tables / "digits.md").exists()


@pytest.mark.parametrize(
    ("missing", "extra", "reason"),
    [
        (None, (), r"digits\.csv: not there"),
        ("patching", (), r"digits\.csv: no rows of patching"),
        ("", ("splits.seed=1",), r"digits\.csv: its rows were made with splits\.seed=0, not 1"),
        ("", ("evaluation.bins=9",), "made with evaluation.bins=15, not 9"),
        ("", ("tuning=paper",), "the rows of patching are of another configuration"),
    ],
)
def test_what_is_missing_or_of_other_settings_is_one_line_with_the_command(
    write_scores, tmp_path, missing, extra, reason
) -> None:
    if missing is not None:
        methods = [method for method in FEW if method != missing]
        write_scores("digits", "yahoo", methods, suite="digits", splits=2)
    request = request_of(tmp_path, "digits", suite="digits", splits=2, extra=extra, methods=FEW)
    with pytest.raises(MissingScores, match=reason) as caught:
        run_report(request)
    message = str(caught.value)
    assert "\n" not in message
    assert "make it with" in message or "make them with" in message
    assert "python -m pipeline.fit suite=digits benchmark=digits splits.count=2" in message


def test_two_lines_of_pandas_load_a_table(write_scores, tmp_path, monkeypatch) -> None:
    """As results/README.md writes them."""
    scores = write_scores("cifar10_resnet", "cifar10_resnet", FEW)
    lines = re.search(r"```python\n(.*?)```", (ROOT / "results/README.md").read_text(), re.DOTALL)
    assert lines is not None
    first, _, second = lines[1].partition("\n\n")
    monkeypatch.chdir(tmp_path)
    table = eval(second.strip(), {"pd": pd}) if first == "import pandas as pd" else None
    assert table is not None and set(table.index) == set(FEW)
    assert table.loc["patching", "u_cwe"] == pytest.approx(
        scores.rows.query("calibrator == 'patching' and metric == 'u_cwe' and split != 'all'")[
            "value"
        ].mean(),
        rel=1e-6,
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_is_committed_is_small_and_holds_no_figure_for_print() -> None:
    done = subprocess.run(["git", "ls-files", "results"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a checkout")
    paths = done.stdout.splitlines()
    assert len(paths) <= 160
    assert not [path for path in paths if path.endswith((".pdf", ".svg", ".npz"))]
