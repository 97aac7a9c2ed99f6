"""The report stage on scores that a fixture writes: seeded numbers around the printed values."""

from pathlib import Path

import pandas as pd
import pytest

from tests.pipeline.reporting import conftest as made_up
from tests.pipeline.reporting.conftest import request_of
from utility_calibration.metrics.registry import METRICS, utility_metric
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.report import run_report, table_specs

FEW = ("uncalibrated", "temperature", "patching")


def files_of(results: Path) -> dict[str, bytes]:
    paths = [p for p in results.rglob("*") if p.is_file() and "scores" not in p.parts]
    return {p.relative_to(results).as_posix(): p.read_bytes() for p in paths}


def test_report_of_the_default_suite(write_scores, tmp_path: Path, capsys, monkeypatch) -> None:
    """From results/scores alone; another calibrator's rows there do not come into the report.

    One entry in the registry is enough for a metric to be in every format.
    """
    monkeypatch.setitem(METRICS, "u_first", utility_metric("u_first", "first", lambda _: None))
    monkeypatch.setattr(made_up, "ALL_METRICS", [*made_up.ALL_METRICS, "u_first"])
    write_scores("digits", "yahoo", (*FEW, "isotonic_raw"), suite="digits", splits=2)
    request = request_of(tmp_path, "digits", suite="digits", splits=2, methods=FEW)
    run_report(request)
    results = tmp_path / "results"
    files = files_of(results)
    assert set(files) == {
        *(f"tables/digits.{kind}" for kind in ("tex", "md", "csv")),
        *(f"figures/ecdf_digits.{kind}" for kind in ("pdf", "svg", "png")),
        *(f"metrics/digits/{method}.json" for method in FEW),
        "digits.html",
        "digits.md",
        "tables/digits_verdict.json",
    }
    for name, text in {
        "tables/digits.tex": r"$\mathcal{U}_{\mathrm{first}}$",
        "tables/digits.md": "U<sub>first</sub> |",
        "tables/digits.csv": "\npatching,u_first,",
        "digits.html": "U<sub>first</sub>",
        "tables/digits_verdict.json": '"u_first"',
    }.items():
        assert text in files[name].decode(), name
    assert "U_first" in capsys.readouterr().out
    assert str(tmp_path) not in files["digits.html"].decode()
    run_report(request)
    assert files_of(results) == files


def test_the_vit_gets_table_one(tmp_path) -> None:
    settings = request_of(tmp_path, "imagenet_vit", suite="imagenet").units()[0].settings
    main, short = table_specs(settings, "imagenet_vit")
    assert main.name == "imagenet_vit" and "u_w2v" in main.metrics
    assert short.name == "imagenet_vit_table1"
    assert tuple(short.metrics) == ("brier", "cwe_bin", "tce_bin", "u_comb")


def test_paper_benchmarks_are_compared_and_one_alone_leaves_the_page_of_the_suite(
    write_scores, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("utility_calibration.pipeline.report.draw_all", lambda *_: [])  # takes long
    benchmarks = ("cifar10_resnet", "cifar10_repvgg")
    for benchmark in benchmarks:
        write_scores(benchmark, benchmark, FEW, splits=5, shift=0.1)
    both = ("suite.benchmarks=[cifar10_resnet,cifar10_repvgg]",)
    asked = {"splits": 5, "extra": both, "methods": FEW}
    compared = {f"metrics/cifar/{method}.json" for method in FEW}
    of_digits = "metrics/digits/vector.json"
    for name in (of_digits, "metrics/cifar/vector.json"):  # the second is of other methods
        earlier = tmp_path / "results" / name
        earlier.parent.mkdir(parents=True)
        earlier.write_text("{}")
    run_report(request_of(tmp_path, *benchmarks, **asked))
    files = files_of(tmp_path / "results")
    assert {f"tables/comparison.{kind}" for kind in ("md", "csv")} <= set(files)
    assert {name for name in files if name.startswith("metrics/")} == {*compared, of_digits}
    all_means = pd.read_csv(tmp_path / "results" / "scores" / "all.csv").query("metric == 'nll'")
    for method, values in all_means.groupby("calibrator")["value"]:
        held = read_json(tmp_path / "results" / "metrics" / "cifar" / f"{method}.json")
        assert list(held) == ["nll", "brier", "u_cwe", "u_topk", "u_dcg"]
        assert held["nll"] == pytest.approx(values.mean(), rel=1e-6) and len(values) == 2
    assert "CIFAR-10 RepVGG-A0: " in capsys.readouterr().out
    assert b"Against the paper" in files["cifar.html"] and b"Who wins" in files["cifar.html"]
    run_report(request_of(tmp_path, "cifar10_resnet", **asked))
    after = files_of(tmp_path / "results")
    assert "report-cifar10_resnet.html" in after
    assert all(after[name] == files[name] for name in ("cifar.html", *compared))


@pytest.mark.parametrize(
    ("missing", "extra", "told"),
    [
        (None, (), "digits.csv"),
        ("patching", (), "patching"),
        ("", ("splits.seed=1",), "splits.seed=0"),
        ("", ("tuning=paper",), "patching"),
    ],
)
def test_what_is_missing_or_of_other_settings_is_one_line_with_the_command(
    write_scores, tmp_path, missing, extra, told
) -> None:
    if missing is not None:
        methods = [method for method in FEW if method != missing]
        write_scores("digits", "yahoo", methods, suite="digits", splits=2)
    request = request_of(tmp_path, "digits", suite="digits", splits=2, extra=extra, methods=FEW)
    with pytest.raises(UnitsFailed) as caught:
        run_report(request)
    line = str(caught.value)
    assert told in line and line.isprintable()
    assert "utility-calibration fit suite=digits benchmark=digits splits.count=2" in line
