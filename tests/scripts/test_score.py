"""scripts/score.py on files of a person's own."""

import numpy as np
import pandas as pd
import pytest
import torch

import calibrators
import metrics
from calibrators.temperature import TemperatureScaling
from metrics import InputError, registry
from pipeline.harness.artifacts import read_npz
from pipeline.harness.cache import record_of
from pipeline.reporting.names import METHODS
from tests.pipeline.conftest import write_example
from tests.scripts.conftest import quick, run

METRICS = [key for key in metrics.METRICS if key != "u_w2v"]
TWO = ("--methods", "uncalibrated", "temperature", "--splits", "2")


def test_everything_is_written_for_two_methods(score, tmp_path, capsys):
    path = write_example(tmp_path / "my model.npz", n=200, classes=2)
    (tmp_path / "l.csv").write_text("class,wait,treat\n0,0,1\n1,4,0\n")
    losses = ("--losses", str(tmp_path / "l.csv"))
    result = run(score, path, tmp_path / "out", *TWO, *losses)
    assert list(result) == ["uncalibrated", "temperature"]
    for scores in result.values():
        assert list(scores) == [*METRICS, "u_losses"]
        for value in scores.values():
            assert np.isfinite(value["mean"])
            assert value["two_se"] >= 0
    names = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert names == {
        "metrics.json", "table.tex", "table.md", "table.csv", "ecdf.pdf", "ecdf.svg", "ecdf.png",
        "report.html", "report.md", "verdict.json", "decisions.json", "decisions.md",
        *(
            f"{figure}.{kind}"
            for figure in ("worst_u_cwe", "worst_u_topk", "worst_u_losses", "decision_curve")
            for kind in ("pdf", "svg", "png")
        ),
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "Temp. Scaling" in printed
    assert "my model" in printed


@pytest.mark.slow
def test_every_method_takes_two_classes(score, tmp_path):
    path = write_example(tmp_path / "x.npz", n=200, classes=2)
    assert list(quick(score, path, tmp_path / "out", "--methods", *METHODS, "--splits", "1")) == [
        *METHODS
    ]


def test_a_registered_utility_has_a_column_everywhere(score, tmp_path, monkeypatch):
    monkeypatch.setitem(registry.METRICS, "u_first", None)  # removed at the end
    del registry.METRICS["u_first"]
    first_class = metrics.FunctionUtility(lambda p: torch.eye(p.shape[1])[0].expand_as(p) * 1.0)
    metrics.register(metrics.utility_metric("u_first", "first", lambda _: first_class))
    path = write_example(tmp_path / "x.npz")
    result = quick(score, path, tmp_path / "out", "--methods", "temperature", "--splits", "2")
    assert 0 < result["temperature"]["u_first"]["mean"] <= result["temperature"]["u_cwe"]["mean"]
    texts = {
        kind: (tmp_path / "out" / f"table.{kind}").read_text() for kind in ("md", "tex", "csv")
    }
    assert "U<sub>first</sub> ×10³" in texts["md"]
    assert r"$\mathcal{U}_{\mathrm{first}}$" in texts["tex"]
    assert "temperature,u_first," in texts["csv"]


def test_csv_similarity_and_a_single_split(score, tmp_path):
    arrays = np.load(write_example(tmp_path / "x.npz"))
    rows = np.column_stack([arrays["labels"], arrays["logits"]])
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",", header="label,a,b,c", comments="")
    np.savetxt(tmp_path / "s.csv", np.eye(3), delimiter=",")
    arguments = [
        score, tmp_path / "x.csv", tmp_path / "out", "--methods", "temperature", "--splits", "1",
        "--similarity", str(tmp_path / "s.csv"), "--title", "Mine",
    ]  # fmt: skip
    result = quick(*arguments)
    assert list(result["temperature"]) == list(metrics.METRICS)
    assert result["temperature"]["accuracy"]["two_se"] is None
    assert "Mine" in (tmp_path / "out/table.tex").read_text()
    np.savetxt(tmp_path / "s.csv", (np.ones((3, 3)) + np.eye(3)) / 2, delimiter=",")
    other = quick(*arguments)  # of another matrix in the file of the same name
    assert other["temperature"]["u_w2v"] != result["temperature"]["u_w2v"]
    assert other["temperature"]["u_cwe"] == result["temperature"]["u_cwe"]


def test_names_and_groups_reach_the_cached_logits(score, tmp_path):
    arrays = np.load(write_example(tmp_path / "x.npz"))
    table = pd.DataFrame(arrays["logits"], columns=["emu", "cat", "dog"])
    table["label"] = np.array(["emu", "cat", "dog"])[arrays["labels"]]
    table["site"] = np.where(np.arange(len(table)) % 3, "A", "B")
    table.to_csv(tmp_path / "named.csv", index=False)
    chosen = ("--methods", "temperature", "--splits", "2")
    named = quick(score, tmp_path / "named.csv", tmp_path / "out", *chosen, "--groups", "site")
    assert named == quick(score, tmp_path / "x.npz", tmp_path / "plain", *chosen)
    record = record_of(tmp_path / "out/data/logits/named.npz")
    assert record is not None and record["details"]["class_names"] == ["emu", "cat", "dog"]
    cached = read_npz(tmp_path / "out/data/logits/named.npz")
    np.testing.assert_array_equal(cached["groups"], table["site"])


def test_a_file_too_large_for_the_memory_is_refused_before_anything_is_written(
    score, tmp_path, monkeypatch
):
    path = write_example(tmp_path / "x.npz")
    monkeypatch.setattr("pipeline.own.size.SMALL", 0)
    monkeypatch.setattr("pipeline.own.size.free_memory", lambda: 0)
    with pytest.raises(metrics.InputError, match=r"200 rows of 3 classes take [\d,]+ bytes"):
        run(score, path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_file_of_the_same_name_is_scored_anew(score, tmp_path):
    out = tmp_path / "out"
    first = quick(score, write_example(tmp_path / "x.npz"), out, *TWO)
    second = quick(score, write_example(tmp_path / "x.npz", seed=1), out, *TWO)
    again = quick(score, write_example(tmp_path / "x.npz"), out, *TWO)
    assert first == again
    assert first != second


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.npz"], "none.npz"),
        (["x.npz", "--methods", "platt"], "known: "),
        (["x.npz", "--methods", "temprature"], "did you mean temperature?"),
        (["x.npz", "--methods", "../tuning/quick"], "--methods: ../tuning/quick: no such"),
        (["x.npz", "--splits", "20000000"], "--splits: 1 to 1000"),
        (["x.npz", "--similarity", "none.csv"], "none.csv"),
        (["x.npz", "--seed", "-1"], "seed=-1"),
        (["x.npz", "--splits", "0"], "--splits"),
        (["."], "this is a folder"),
    ],
)
def test_mistakes_are_one_line(score, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "x.npz")
    with pytest.raises(SystemExit) as caught, score.user_errors_in_one_line():
        score.score(score.parse([*arguments, "--output", "out"]))
    assert caught.value.code in (1, 2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert not (tmp_path / "out").exists()


def test_what_apply_could_not_load_is_refused_before_anything_is_fitted(
    score, tmp_path, monkeypatch
):
    class Mine(TemperatureScaling):
        """Found by the configuration, but not in `__all__` of calibrators/__init__.py."""

    monkeypatch.setattr(calibrators, "TemperatureScaling", Mine, raising=False)
    monkeypatch.setattr(calibrators, "Mine", Mine, raising=False)  # as WHERE alone would make it
    path, out = write_example(tmp_path / "x.npz"), tmp_path / "out"
    with pytest.raises(InputError, match=r"--save: .* a Mine, which calibrators/__init__.py"):
        run(score, path, out, "--methods", "temperature", "--save", str(tmp_path / "c.npz"))
    assert not out.exists()


@pytest.mark.parametrize("saved", ["uncalibrated", "temperature"])
def test_a_saved_method_that_was_not_scored_is_told(score, tmp_path, capsys, saved):
    path = write_example(tmp_path / "x.npz")
    keep = ["--method", saved, "--save", str(tmp_path / "c.npz")]
    quick(score, path, tmp_path / "out", "--methods", "uncalibrated", "--splits", "1", *keep)
    told = f"{saved} fitted on all points and not scored here; see" in capsys.readouterr().out
    assert told == (saved != "uncalibrated")


@pytest.mark.parametrize("output", ["x.npz", "x.npz/out"])
def test_an_output_that_is_a_file_is_named(score, tmp_path, monkeypatch, capsys, output):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "x.npz")
    with pytest.raises(SystemExit):
        score.parse(["x.npz", "--output", output])
    error = capsys.readouterr().err
    assert error.startswith(f"error: --output {output}: x.npz is a file; name a folder")
    assert error.count("\n") == 1


def test_a_method_is_known_by_how_it_begins(score):
    options = score.parse(["x.npz", "--methods", "temp", "vec", "isotonic"])
    assert options.methods == ["temperature", "vector", "isotonic"]
    assert score.parse(["x.npz", "--save", "c.npz", "--method", "temp"]).method == "temperature"


def test_quick_takes_methods_without_tuning_unless_others_are_named(score):
    quick = score.parse(["x.npz", "--quick"])
    assert (quick.methods, quick.splits) == (["uncalibrated", "temperature", "vector"], 3)
    settings = score.settings_of(quick, "vector")
    assert settings["evaluation"]["utilities"] == 200
    named = score.parse(["x.npz", "--quick", "--methods", "isotonic", "--splits", "2"])
    assert (named.methods, named.splits) == (["isotonic"], 2)


def test_quick_writes_the_page_and_no_images(score, tmp_path):
    path = write_example(tmp_path / "x.npz")
    quick(score, path, tmp_path / "out", "--splits", "1", "--methods", "temp")
    names = {file.name for file in (tmp_path / "out").iterdir() if file.is_file()}
    assert names == {
        "metrics.json", "table.tex", "table.md", "table.csv",
        "report.html", "report.md", "verdict.json",
    }  # fmt: skip
