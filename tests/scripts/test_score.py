"""utility-calibration score on files of a person's own."""

import os
import re
import subprocess
import sys
import time
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.conftest import write_example
from tests.refusals import check_line, fails
from tests.scripts.conftest import quick, run
from utility_calibration import metrics
from utility_calibration.calibrators import TemperatureScaling
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.metrics import scorecard
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.own.request.folder import LIST, give_back
from utility_calibration.pipeline.own.request.job import settings_of
from utility_calibration.pipeline.own.running import run as running
from utility_calibration.pipeline.own.words.file_options import FileOptions
from utility_calibration.scripts import score

TWO = ("--methods", "uncalibrated", "temperature", "--splits", "2")


def test_everything_is_written_for_two_methods(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(running, "BEGAN", time.monotonic() - 7000)
    path = write_example(tmp_path / "my model.npz", n=200, classes=2)
    (tmp_path / "l.csv").write_text("class,wait,treat\n0,0,1\n1,4,0\n")
    np.savetxt(tmp_path / "s.csv", np.eye(2), delimiter=",")
    files = ("--losses", str(tmp_path / "l.csv"), "--similarity", str(tmp_path / "s.csv"))
    result = run(path, tmp_path / "out", *TWO, *files, "--title", "Mine", "--wide")
    assert list(result) == ["uncalibrated", "temperature"]
    for scores in result.values():
        assert list(scores) == [*metrics.METRICS, "u_losses"]
        for value in scores.values():
            assert np.isfinite(value["mean"])
            assert value["two_se"] >= 0
    names = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert names == {
        "metrics.json", "table.tex", "table.md", "table.csv", "ecdf.pdf", "ecdf.svg", "ecdf.png",
        "report.html", "report.md", "verdict.json", "decisions.json", "decisions.md", LIST,
        *(
            f"{figure}.{kind}"
            for figure in (
                "present", "worst_u_cwe", "worst_u_topk", "worst_u_losses", "decision_curve"
            )
            for kind in ("pdf", "svg", "png")
        ),
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "Temp. Scaling" in printed
    assert re.search(r"in 7\d\d\d s", printed), "the start of the process counts"
    assert "Mine" in printed and "Mine" in (tmp_path / "out/table.tex").read_text()
    give_back(tmp_path / "out")
    assert not (tmp_path / "out").exists(), "something is written that is not on the list"


@pytest.mark.parametrize("text", ["${seed}", "a${", "???"])
def test_what_looks_like_a_setting_is_taken_literally(tmp_path, text):
    path = write_example(tmp_path / f"{text}.npz", n=200, classes=2)
    given = [f"--{name}={text}" for name in ("title", "ignore")]
    options = score.parse([str(path), f"--output={tmp_path / text}", *given])
    job = running.read(options, running.checked(options))
    settings = job.first
    assert (settings.benchmark.title, settings.benchmark.source["ignore"]) == (text, text)
    assert job.logits.n == 200
    assert (tmp_path / text / "data").is_dir()


def test_every_choice_of_the_command_line_reaches_the_reader(tmp_path):
    said: dict[str, object] = {of.name: of.name for of in fields(FileOptions)}
    said |= {"values": "logits", "decimal": ",", "distinct": True}
    flags = {name: "" if text is True else f"={text}" for name, text in said.items()}
    given = [f"--{name.replace('_', '-')}{text}" for name, text in flags.items()]
    (settings,) = settings_of(score.parse(["x.npz", *given]), ["uncalibrated"]).values()
    source = settings.benchmark.source
    assert source.items() >= said.items()
    arrays = np.load(write_example(tmp_path / "x.npz", n=200, classes=2))
    odd = np.where(np.arange(200) < 5, -100, arrays["labels"])
    np.savez(tmp_path / "own.npz", z=arrays["logits"], t=odd)
    given = ["--labels=t", "--logits=z", "--ignore-label=-100", f"--output={tmp_path / 'out'}"]
    options = score.parse([str(tmp_path / "own.npz"), "--methods", "uncalibrated", *given])
    assert running.read(options, running.checked(options)).logits.n == 195


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.npz"], "none.npz"),
        (["x.npz", "--methods", "temprature"], "temperature?"),
        (["x.npz", "--splits", "20000000"], "splits.count=20000000"),
        (["x.npz", "--splits", "0"], "splits.count=0"),
        (["x.npz", "--similarity", "none.csv"], "none.csv"),
        (["x.npz", "--calibrate-for", "losses"], "--losses"),
        (["x.npz", "--save", "a.csv", "--method", "vector"], ".npz"),
        (["x.npz", "--save-on", "all"], "--save"),
        (["x.npz", "--stream", "--splits", "3"], "--splits"),
        (["x.npz", "--stream", "--methods", "temp"], "--calibrator"),
        (["x.npz", "--output", "x.npz"], "x.npz"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "x.npz")
    monkeypatch.setattr(sys, "argv", ["score", "--output", "out", *arguments])
    with pytest.raises(SystemExit) as caught:
        score.main()
    assert caught.value.code in (1, 2)
    check_line(capsys.readouterr().err.removesuffix("\n"), told)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "given", ["score --help", "apply --help", "score none.npz", "report split=0"]
)
def test_what_needs_no_numbers_is_told_before_kernels_are_imported(given):
    program = "import runpy, sys\ntry: runpy.run_module('utility_calibration', run_name='__main__')"
    program += "\nexcept SystemExit: sys.exit('numba' in sys.modules)"
    command = [sys.executable, "-c", program, *given.split()]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_quick_look_says_that_it_leaves_out_the_default(tmp_path, capsys):
    path = write_example(tmp_path / "x.npz", n=200, classes=2)
    shown = {}
    for name, methods in (("all", ()), ("named", ("--methods", "temperature"))):
        quick(path, tmp_path / name, "--splits", "1", *methods)
        printed = " ".join(capsys.readouterr().out.split())
        page = " ".join((tmp_path / name / "report.md").read_text().split())
        shown[name] = ["default method" in text for text in (printed, page)]
        drawn = {file.name for file in (tmp_path / name).glob("*.svg")}
        assert len(drawn) == 1 and "ecdf.svg" not in drawn
    assert shown == {"all": [True, True], "named": [False, False]}


def test_a_method_is_known_by_how_it_begins_and_quick_takes_those_without_tuning():
    options = score.parse(["x.npz", "--methods", "temp", "vec", "isotonic"])
    assert options.methods == ("temperature", "vector", "isotonic")
    assert score.parse(["x.npz", "--save", "c.npz", "--method", "temp"]).method == "temperature"
    quick = score.parse(["x.npz", "--quick"])
    assert (quick.methods, quick.split_count) == (("uncalibrated", "temperature", "vector"), 3)
    assert settings_of(quick, ["vector"])["vector"].evaluation.utilities == 200
    named = score.parse(["x.npz", "--quick", "--methods", "isotonic", "--splits", "2"])
    assert (named.methods, named.split_count) == (("isotonic",), 2)


ONE_METHOD = ("--methods", "temperature")


@pytest.fixture
def arrays(tmp_path):
    """300 points, of which the first 200 calibrate."""
    return dict(np.load(write_example(tmp_path / "all.npz", n=300)))


@pytest.mark.parametrize(("saved_on", "fitted"), [("calibration", 200), ("all", 300)])
def test_a_second_file_tests_and_what_is_saved_is_of_the_points_asked_for(
    tmp_path, arrays, capsys, saved_on, fitted
):
    for name, rows in (("cal", slice(None, 200)), ("test", slice(200, None))):
        np.savez(tmp_path / f"{name}.npz", **{key: a[rows] for key, a in arrays.items()})
    keep = ("--save", str(tmp_path / "kept.npz"), "--save-on", saved_on)
    keep += ("--test", str(tmp_path / "test.npz"), "--splits", "4")
    result = quick(tmp_path / "cal.npz", tmp_path / "out", *ONE_METHOD, *keep)["temperature"]
    z, y = arrays["logits"], arrays["labels"]
    by_hand = TemperatureScaling().fit(z[:200], y[:200])
    card = scorecard(by_hand.predict_proba(z[200:]), y[200:], utilities=0)
    for metric in ("nll", "u_cwe", "accuracy"):
        assert result[metric]["mean"] == pytest.approx(card.metrics[metric], rel=1e-6)
    assert result["u_cwe"]["splits"] == 1
    assert result["u_cwe"]["interval"] == "bootstrap" and result["u_cwe"]["half_width"] > 0
    expected = TemperatureScaling().fit(z[:fitted], y[:fitted])
    assert Calibrator.load(tmp_path / "kept.npz").temperature_ == expected.temperature_
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search("200 of them fit .* 100 others test", printed)
    assert "--splits 4: not used" in printed


def test_weights_weigh_fits_and_scores_and_others_methods_are_left_out(tmp_path, arrays, capsys):
    """The same numbers as by hand: metrics, floors, worst intervals and costs of decisions."""
    words = np.array(["cal"] * 200 + ["test"] * 100)
    weights = np.random.default_rng(0).integers(0, 4, size=300)
    np.savez(tmp_path / "mine.npz", **arrays, split=words, weight=weights)
    classes = arrays["logits"].shape[1]
    losses = np.round(np.random.default_rng(1).random((classes, 2)), 2)
    table = pd.DataFrame(losses, columns=["wait", "act"])
    table.insert(0, "class", range(classes))
    table.to_csv(tmp_path / "l.csv", index=False)
    chosen = ("--methods", "temperature", "beta", "--losses", str(tmp_path / "l.csv"))
    result = quick(tmp_path / "mine.npz", tmp_path / "out", *chosen)
    assert list(result) == ["temperature"]
    assert "beta" in capsys.readouterr().out
    z, y, w = arrays["logits"], arrays["labels"], weights
    p = TemperatureScaling().fit(z[:200], y[:200], w[:200]).predict_proba(z[200:])
    card = scorecard(p, y[200:], utilities=0, sample_weight=w[200:], floor_repetitions=0)
    for metric in ("nll", "u_cwe", "accuracy", "cwe_bin"):
        assert result["temperature"][metric]["mean"] == pytest.approx(card.metrics[metric])
    costs = losses[y[200:], (p @ losses).argmin(axis=1)]
    decided = read_json(tmp_path / "out" / "decisions.json")["methods"]["temperature"]
    assert decided["cost"] == pytest.approx(np.average(costs, weights=w[200:]))
    with fails(UsageError, "weights"):
        quick(tmp_path / "mine.npz", tmp_path / "other", "--methods", "beta")
    keep = ("--save", str(tmp_path / "kept.npz"), "--method", "beta")
    with fails(UsageError, "--method beta", "weights"):
        quick(tmp_path / "mine.npz", tmp_path / "other", *ONE_METHOD, *keep)
    assert not (tmp_path / "other/report.html").exists()


def test_a_report_that_fails_loses_neither_the_calibrator_nor_numbers(tmp_path, monkeypatch):
    path, out, kept = write_example(tmp_path / "x.npz"), tmp_path / "out", tmp_path / "kept.npz"
    keep = ("--methods", "temperature", "--splits", "1", "--save", str(kept))

    def cannot_draw(*_):
        raise RuntimeError("no figure")

    with monkeypatch.context() as failing, pytest.raises(RuntimeError):
        failing.setattr("utility_calibration.pipeline.reporting.style.draw_all", cannot_draw)
        run(path, out, *keep)
    assert kept.is_file()
    assert {"verdict.json", "metrics.json", "table.csv"} <= {file.name for file in out.iterdir()}


def test_absent_classes_are_told_first(tmp_path, arrays, capsys):
    z, y = arrays["logits"], arrays["labels"]
    lacking, rest = (np.arange(300) < 200) & (y != 2), np.arange(300) >= 200
    for name, rows in (("cal", lacking), ("test", rest)):
        np.savez(tmp_path / f"{name}.npz", logits=z[rows], labels=y[rows])
    files = [str(tmp_path / "cal.npz"), "--test", str(tmp_path / "test.npz")]
    options = score.parse([*files, "--output", str(tmp_path / "out")])
    running.read(options, running.checked(options))
    told = " ".join(capsys.readouterr().out.split())
    assert "class 2" in told and "1 of 1 splits" in told


def test_what_is_computed_is_stored_before_it_is_printed_and_whatever_the_terminal(tmp_path):
    path, out = write_example(tmp_path / "x.npz"), tmp_path / "out"
    command = [
        *(sys.executable, "-m", "utility_calibration", "score", str(path), "--output", str(out)),
        *("--quick", "--jobs", "1", "--methods", "uncalibrated", "--splits", "1"),
        *("--title", "cost [/day]", "--wide", "--save", str(tmp_path / "saved.npz")),
    ]
    environment = {**os.environ, "COLUMNS": "0"}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "cost [/day]" in shown.stdout
    (tmp_path / "saved.npz").unlink()
    reader, writer = os.pipe()
    os.close(reader)  # as a pager that was left
    closed = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    assert (closed.returncode, closed.stderr) == (0, b"")
    assert (tmp_path / "saved.npz").is_file()


@pytest.mark.parametrize("text", ["", "a\nb", "caf\udce9.npz", "\x1b[31m"])
def test_an_argument_that_no_report_can_show_is_one_line(tmp_path, monkeypatch, capsys, text):
    monkeypatch.setattr(sys, "argv", ["score", "x.npz", "--output", text])
    with pytest.raises(SystemExit) as ended:
        score.main()
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert error.count("\n") == 1 and error.isascii()


def test_zeros_of_a_file_are_judged_as_those_of_an_array(tmp_path):
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 600)
    y = (p.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    p = np.where(p < 0.05, 0, p)
    p = p / p.sum(axis=1, keepdims=True)
    split = np.where(np.arange(600) < 300, "calibration", "test")
    np.savez(tmp_path / "my.npz", probabilities=p, labels=y, split=split)
    result = quick(
        tmp_path / "my.npz", tmp_path / "out", "--methods", "uncalibrated", "temperature"
    )
    card = scorecard(p[300:], y[300:])
    nll = result["uncalibrated"]["nll"]
    assert nll["zero_likelihood"] == card.zero_likelihood > 0
    assert nll["mean"] == pytest.approx(card.metrics["nll"], rel=1e-5)
    assert result["temperature"]["nll"]["zero_likelihood"] == 0
    verdict = read_json(tmp_path / "out/verdict.json")
    assert not any("uncalibrated" in use["named"] for use in verdict["uses"])
    assert verdict["answer"]["word"] == "no"
    assert verdict["overall"] != "uncalibrated"
