"""The report stage on runs that a fixture writes: seeded numbers around the printed values."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import escape

from pipeline.harness.artifacts import read_json, read_record, write_record
from pipeline.harness.units import Request
from pipeline.report import run_report, table_specs
from pipeline.reporting.collect import MissingUnits
from pipeline.reporting.names import METHODS
from pipeline.reporting.provenance import facts_of

ROOT = Path(__file__).parents[3]


@pytest.fixture
def request_for(tmp_path: Path):
    def make(*benchmarks: str, suite: str = "digits", extra: tuple[str, ...] = ()) -> Request:
        return Request(
            suite=suite,
            benchmarks=benchmarks,
            calibrators=tuple(METHODS),
            splits=(0, 1),
            overrides=(
                f"suite={suite}",
                "splits.count=2",
                f"paths.results={tmp_path / 'results'}",
                f"paths.data={tmp_path / 'data'}",
                *extra,
            ),
            whole_suite=True,
        )

    return make


def files_of(results: Path) -> dict[str, bytes]:
    paths = [p for p in results.rglob("*") if p.is_file() and "runs" not in p.parts]
    return {p.relative_to(results).as_posix(): p.read_bytes() for p in paths}


def test_report_of_the_default_suite(write_runs, request_for, tmp_path: Path, capsys) -> None:
    write_runs("digits", "yahoo", splits=2)
    sidecar = {"n": 1198, "classes": 10, "accuracy": 96.5, "sha256": "ab" * 32, "source": "digits"}
    write_record(tmp_path / "data" / "logits" / "digits.json", sidecar)
    run_report(request_for("digits"))
    results = tmp_path / "results"
    files = files_of(results)
    assert set(files) == {
        *(f"tables/digits.{kind}" for kind in ("tex", "md", "csv")),
        *(f"figures/ecdf_digits.{kind}" for kind in ("pdf", "svg", "png")),
        "logits/digits.json",
        "metrics.json",
        "plots/figures/ecdf_digits.png",
        "report.html",
        "report.md",
        "tables/digits_verdict.json",
        "suites/digits/report.json",
    }
    printed = capsys.readouterr().out
    assert "Noise floor" in printed
    assert "digits.{tex,md,csv}" in printed
    page = files["report.html"].decode()
    assert "1198 points, 10 classes, accuracy 96.50 %" in page
    assert "digits" in json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert "torch 2.13.0" in page
    assert str(tmp_path) not in page
    verdict = read_json(results / "tables" / "digits_verdict.json")["verdict"]
    assert verdict and all(sentence in printed for sentence in verdict)
    assert all(str(escape(sentence)) in page for sentence in verdict)
    receipt = read_json(results / "suites" / "digits" / "report.json")
    assert set(receipt) == set(files) - {
        "suites/digits/report.json",
        "plots/figures/ecdf_digits.png",
    }
    run_report(request_for("digits"))
    assert files_of(results) == files


def test_the_page_shows_what_the_dynamics_stage_drew(write_runs, request_for, tmp_path) -> None:
    write_runs("digits", "yahoo", splits=2)
    folder = tmp_path / "results" / "figures"
    folder.mkdir()
    for kind, benchmark in (("history", "digits"), ("snapshots", "digits"), ("history", "other")):
        (folder / f"dynamics_{kind}_{benchmark}.svg").write_text(f"<svg>{kind}</svg>")
    run_report(request_for("digits"))
    page = (tmp_path / "results" / "report.html").read_text()
    assert page.count("<figure>") == 2
    assert "Patching against sampled users, history" in page


def test_fewer_tuning_runs_than_the_paper_are_told_in_the_table(write_runs, request_for) -> None:
    write_runs("digits", "yahoo", splits=2)
    (settings,) = request_for("digits").benchmark_settings()
    (spec,) = table_specs(settings, "digits", tuple(METHODS), tuple(METHODS))
    assert spec.remarks[0].startswith("Tuned with 8 runs for Dirichlet and 4 for patching")
    (settings,) = request_for("digits", extra=("tuning=paper",)).benchmark_settings()
    (spec,) = table_specs(settings, "digits", tuple(METHODS), tuple(METHODS))
    assert spec.remarks == ()


def test_the_note_on_tuning_says_what_was_done_not_what_is_configured(
    write_runs, request_for, tmp_path
) -> None:
    write_runs("digits", "yahoo", splits=2)
    fit = tmp_path / "results/runs/digits/patching/split-0/fit.json"
    record = {"calibrator": "patching", "config": {"tuning_runs": 2}, "parameters_sha256": "0"}
    write_record(fit, record)
    (settings,) = request_for("digits").benchmark_settings()
    (spec,) = table_specs(settings, "digits", tuple(METHODS), tuple(METHODS))
    assert "8 runs for Dirichlet and 2 for patching" in spec.remarks[0]


def test_the_vit_gets_table_one_and_variants_their_own(request_for) -> None:
    (settings,) = request_for("imagenet_vit", suite="imagenet").benchmark_settings()
    available = (*METHODS, "isotonic_raw")
    main, short, variants = table_specs(settings, "imagenet_vit", tuple(METHODS), available)
    assert main.name == "imagenet_vit" and "u_w2v" in main.metrics
    assert short.name == "imagenet_vit_table1"
    assert tuple(short.metrics) == ("brier", "cwe_bin", "tce_bin", "u_comb")
    assert variants.name == "imagenet_vit_variants"
    assert list(variants.methods) == ["isotonic", "isotonic_raw"]


def test_paper_benchmarks_are_compared(write_runs, request_for, tmp_path: Path, capsys) -> None:
    write_runs("cifar10_resnet", "cifar10_resnet", splits=2, shift=0.1)
    write_runs("cifar10_resnet44", "cifar10_resnet", splits=2)
    run_report(request_for("cifar10_resnet", suite="cifar"))
    files = files_of(tmp_path / "results")
    assert {f"tables/comparison.{kind}" for kind in ("md", "csv", "html")} <= set(files)
    assert "CIFAR-10" in capsys.readouterr().out
    assert "cifar10_resnet44" in files["report.html"].decode()
    assert json.loads(files["suites/cifar/report.json"])


def test_another_evaluation_has_files_of_its_own(write_runs, request_for, tmp_path: Path) -> None:
    write_runs("digits", "yahoo", splits=2, suffix="-paper_batches")
    run_report(request_for("digits", extra=("evaluation=paper_batches",)))
    results = tmp_path / "results"
    assert (
        "batches of 1000 test points"
        in (results / "tables" / "digits-paper_batches.md").read_text()
    )
    assert not (results / "tables" / "digits.md").exists()


def test_a_report_of_one_benchmark_leaves_the_page_of_the_suite(
    write_runs, request_for, tmp_path: Path
) -> None:
    for benchmark in ("cifar10_resnet", "cifar10_repvgg"):
        write_runs(benchmark, benchmark, splits=2)
    both = "suite.benchmarks=[cifar10_resnet,cifar10_repvgg]"
    run_report(request_for("cifar10_resnet", "cifar10_repvgg", suite="cifar", extra=(both,)))
    results = tmp_path / "results"
    before = {name: (results / name).read_bytes() for name in ("report.html", "metrics.json")}
    assert b"Overview" in before["report.html"]
    one = request_for("cifar10_resnet", suite="cifar", extra=(both,))
    run_report(replace(one, whole_suite=False))
    assert (results / "report-cifar10_resnet.html").is_file()
    assert {name: (results / name).read_bytes() for name in before} == before


def test_missing_units_are_one_line_with_the_command(write_runs, request_for) -> None:
    write_runs("digits", "yahoo", splits=1)
    with pytest.raises(MissingUnits) as caught:
        run_report(request_for("digits"))
    message = str(caught.value)
    assert "7 of 14 results are missing (digits uncalibrated split 1" in message
    assert "make them with: python -m pipeline.fit suite=digits splits.count=2" in message
    assert message.count("suite=digits") == 2


def test_the_command_for_missing_units_can_be_pasted_into_a_shell(
    request_for, tmp_path: Path
) -> None:
    overrides = ("suite.benchmarks=[digits,yahoo]", f"paths.results={tmp_path}")
    with pytest.raises(MissingUnits, match=r" 'suite.benchmarks=\[digits,yahoo\]' "):
        run_report(replace(request_for("digits"), overrides=(*overrides, "splits.count=2")))


def test_exit_codes_of_the_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipeline.report", f"paths.results={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith("error:") and done.stderr.count("\n") == 1
    assert "70 of 70 results are missing" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_copy_of_a_sidecar_names_no_folder(write_runs, request_for, tmp_path) -> None:
    write_runs("digits", "yahoo", splits=2)
    origin = {"file": str(tmp_path / "a.npz"), "sha256": "cd" * 32, "list": [str(tmp_path)]}
    write_record(
        tmp_path / "data" / "logits" / "digits.json",
        {"n": 9, "classes": 3, "accuracy": 50.0, "sha256": "ab" * 32, "origin": origin},
    )
    run_report(request_for("digits"))
    copied = read_record(tmp_path / "results" / "logits" / "digits.json")
    assert copied is not None
    assert copied["origin"] == {**origin, "file": "a.npz", "list": [tmp_path.name]}


def test_what_the_logits_are_is_read_from_the_copy_unless_that_was_edited(
    request_for, tmp_path
) -> None:
    settings = request_for("digits").settings("digits")
    copy = tmp_path / "results" / "logits" / "digits.json"
    write_record(copy, {"n": 9, "classes": 3, "accuracy": 50.0, "sha256": "ab" * 32})
    (said,) = facts_of(settings)
    assert said == f"9 points, 3 classes, accuracy 50.00 %; logits sha256 {'ab' * 8}."
    copy.write_text(copy.read_text().replace("50.0", "99.0"))
    assert facts_of(settings) == []
