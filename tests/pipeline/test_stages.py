"""Logits, fit and evaluate on a small benchmark: idempotent, resumable, told apart by hash."""

import re
import shlex
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from metrics import InputError
from pipeline import evaluate, fit
from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.artifacts import (
    CorruptFile,
    read_json,
    read_npz,
    sha256_of,
    write_json,
    write_npz,
)
from pipeline.harness.cached_logits import command_for, running_path
from pipeline.harness.command import CONF, UnitsFailed
from pipeline.logits import run_logits
from pipeline.reporting.collect import Runs
from tests.pipeline.conftest import files_below, request_of, run_all, times, write_example

FAST = "suite.calibrators=[uncalibrated,temperature]"


def what_was_done(captured):
    """The stages' closing lines, without seconds."""
    return [re.sub(r", [\d.]+ s$", "", line) for line in captured.readouterr().out.splitlines()]


def test_files_and_their_content(request_tiny, tmp_path):
    run_all(request_tiny("calibrator=temperature"))
    sidecar = read_json(tmp_path / "data/logits/tiny.json")
    assert (sidecar["n"], sidecar["classes"]) == (200, 3)
    assert sidecar["sha256"] == sha256_of(tmp_path / "data/logits/tiny.npz")
    assert sidecar["origin"]["file"] == str(tmp_path / "tiny.npz")
    given, cached = read_npz(tmp_path / "tiny.npz"), read_npz(tmp_path / "data/logits/tiny.npz")
    for name in ("logits", "labels"):
        np.testing.assert_array_equal(given[name], cached[name])
    for split in range(3):
        folder = tmp_path / f"results/runs/tiny/temperature/split-{split}"
        fitted = read_json(folder / "fit.json")
        assert fitted["config"]["_target_"] == "calibrators.TemperatureScaling"
        assert fitted["logits_sha256"] == sidecar["sha256"]
        assert fitted["split"] == split
        scores = read_json(folder / "metrics.json")
        assert scores["n_test"] == 60
        assert {"accuracy", "u_comb", "u_dcg"} <= set(scores["metrics"])
        assert read_npz(folder / "ecdf.npz")["linear"].shape == (20,)
        assert {path.name for path in folder.iterdir()} == {
            "parameters.npz", "fit.json", "run-fit.json",
            "ecdf.npz", "metrics.json", "run-metrics.json",
        }  # fmt: skip


def test_second_run_writes_nothing(request_tiny, tmp_path, capsys):
    run_all(request_tiny(FAST))
    before = times(tmp_path)
    capsys.readouterr()
    run_all(request_tiny(FAST))
    assert times(tmp_path) == before
    assert what_was_done(capsys) == [
        "logits: nothing to do, 1 up to date",
        "fit: nothing to do, 6 up to date",
        "evaluate: nothing to do, 6 up to date",
    ]


def test_an_unknown_metric_is_told_before_any_work(request_tiny, tmp_path):
    asked = "benchmark.metrics=[u_cwo]"
    for run in (run_fit, run_evaluate):
        before = files_below(tmp_path)
        with pytest.raises(InputError, match=r"u_cwo is no metric \(did you mean u_cwe\?\)"):
            run(request_tiny("calibrator=temperature", asked).units())
        assert files_below(tmp_path) == before
        run_logits(request_tiny().benchmark_settings())
        run_fit(request_tiny("calibrator=temperature").units())


NOTHING_TO_DO = """
import sys
from tests.pipeline.conftest import request_of
from pipeline.logits import run_logits
from pipeline.fit import run_fit
from pipeline.evaluate import run_evaluate
request = request_of(*sys.argv[1:])
run_logits(request.benchmark_settings(), request)
run_fit(request.units(), request)
run_evaluate(request.units(), request)
import pipeline.record  # what `make repro` runs
print(sorted({"torch", "sklearn", "numba", "pandas", "matplotlib"} & sys.modules.keys()))
"""


def test_stages_with_nothing_to_do_import_nothing_heavy(request_tiny):
    request = request_tiny(FAST)
    run_all(request)
    command = [sys.executable, "-c", NOTHING_TO_DO, "benchmark=file", *request.overrides]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CONF.parent)
    assert told.stdout.splitlines()[-2:] == ["evaluate: nothing to do, 6 up to date", "[]"]


def test_force_redoes(request_tiny, tmp_path):
    run_all(request_tiny("calibrator=temperature"))
    before = times(tmp_path)
    run_fit(request_tiny("calibrator=temperature", "split=1", "force=true").units())
    changed = {path.parent.name for path, time in times(tmp_path).items() if before[path] != time}
    assert changed == {"split-1"}


@pytest.mark.parametrize("name", ["parameters.npz", "ecdf.npz"])
@pytest.mark.parametrize("damage", ["truncated", "absent", "edited"])
def test_damaged_results_are_made_again(request_tiny, tmp_path, capsys, name, damage):
    request = request_tiny("calibrator=vector")
    run_all(request)
    path = tmp_path / "results/runs/tiny/vector/split-2" / name
    whole = path.read_bytes()
    if damage == "absent":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        with zipfile.ZipFile(path) as archive:
            record = archive.read("record.json")
        write_npz(path, **{k: v + 1 for k, v in read_npz(path).items() if v.dtype.kind == "f"})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("record.json", record)
    capsys.readouterr()
    run_fit(request.units())
    run_evaluate(request.units())
    assert path.read_bytes() == whole
    redone = [line for line in what_was_done(capsys) if line.startswith("│ vector")]
    kept = [line.split("│")[3].strip() for line in redone]
    assert kept == ["2"]  # a fit made again gives the same bytes, so its scores stand


@pytest.mark.parametrize("name", ["fit.json", "metrics.json"])
@pytest.mark.parametrize("content", ["half", "", "[]", "null", "{}", "edited"])
def test_a_damaged_copy_of_a_record_is_restored(request_tiny, tmp_path, capsys, name, content):
    request = request_tiny("calibrator=vector")
    run_all(request)
    path = tmp_path / "results/runs/tiny/vector/split-2" / name
    whole = path.read_bytes()
    damaged = {"half": whole[:99], "edited": whole.replace(b'"split": 2', b'"split": 1')}
    path.write_bytes(damaged.get(content, content.encode()))
    capsys.readouterr()
    run_fit(request.units())
    run_evaluate(request.units())
    assert path.read_bytes() == whole
    assert what_was_done(capsys)[0] == "fit: nothing to do, 3 up to date"


def test_what_is_committed_is_the_same_in_every_run(request_tiny, tmp_path):
    """Seconds, versions, devices and hosts lie in files of their own."""
    run_all(request_tiny("calibrator=vector", "split=0"))
    folder = tmp_path / "results/runs/tiny/vector/split-0"
    before = {name: (folder / name).read_bytes() for name in ("fit.json", "metrics.json")}
    notes = read_json(folder / "run-fit.json")
    assert {"seconds", "peak_megabytes", "device", "host", "versions"} <= notes.keys()
    assert {"python", "numpy", "torch", "torchvision"} <= notes["versions"].keys()
    run_all(request_tiny("calibrator=vector", "split=0", "force=true"))
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_options_of_a_calibrator_refit_and_stale_scores_do_not_count(request_tiny, tmp_path):
    run_all(request_tiny("calibrator=vector", "split=0"))
    folder = tmp_path / "results/runs/tiny/vector/split-0"
    first = read_json(folder / "fit.json")["hash"]
    changed = request_tiny("calibrator=vector", "split=0", "calibrator.l2=0.1")
    with pytest.raises(UnitsFailed, match=r"not fitted with these settings.*pipeline\.fit"):
        run_evaluate(changed.units())
    run_fit(changed.units())
    assert read_json(folder / "fit.json")["hash"] != first
    runs = Runs(tmp_path / "results/runs")
    assert not runs.has(("tiny", "vector", 0))  # the scores that lie there are of the first fit
    run_evaluate(changed.units())
    assert runs.has(("tiny", "vector", 0))


def test_options_of_the_evaluation_refit_nothing(request_tiny, tmp_path):
    run_all(request_tiny("calibrator=temperature"))
    before = times(tmp_path)
    run_all(request_tiny("calibrator=temperature", "evaluation.bins=5"))
    changed = {path.name for path, time in times(tmp_path).items() if before[path] != time}
    assert changed == {"metrics.json", "ecdf.npz", "run-metrics.json"}


def test_a_named_evaluation_lies_beside_the_default(request_tiny, tmp_path):
    run_all(request_tiny("calibrator=temperature", "split=0"))
    folder = tmp_path / "results/runs/tiny/temperature/split-0"
    before = times(folder)
    run_evaluate(
        request_tiny(
            "calibrator=temperature", "split=0", "evaluation=paper_batches",
            "evaluation.utility_batch=30",
        ).units()
    )  # fmt: skip
    assert {path: times(folder)[path] for path in before} == before
    assert read_json(folder / "metrics-paper_batches.json")["evaluation"]["utility_batch"] == 30
    assert (folder / "ecdf-paper_batches.npz").is_file()


def test_code_and_logits_are_part_of_the_hash(request_tiny, tmp_path, monkeypatch):
    request = request_tiny("calibrator=temperature", "split=0")
    run_all(request)
    assert fit.fit_tasks(request.units())[0].is_done()
    monkeypatch.setattr(fit, "source_fingerprint", lambda *targets: "other code")
    assert not fit.fit_tasks(request.units())[0].is_done()
    monkeypatch.undo()
    monkeypatch.setattr(evaluate, "source_fingerprint", lambda *targets: "other code")
    (task,) = fit.fit_tasks(request.units())
    assert task.is_done()
    assert not evaluate.EvaluateTask.of(task).is_done()
    monkeypatch.undo()
    write_example(tmp_path / "tiny.npz", seed=1)
    run_logits(request.benchmark_settings())
    assert not fit.fit_tasks(request.units())[0].is_done()


def test_fits_and_scores_are_of_the_logits_that_the_settings_name(request_tiny, tmp_path):
    """Also where those of another file are cached: a changed file is read again, and refitted."""
    request = request_tiny("calibrator=temperature", "split=0")
    run_all(request)
    (before,) = fit.fit_tasks(request.units())
    write_example(tmp_path / "tiny.npz", seed=1)
    (task,) = fit.fit_tasks(request.units())
    assert task.logits.sha256 != before.logits.sha256
    assert not task.is_done()
    with pytest.raises(UnitsFailed, match="not fitted with these settings"):
        run_evaluate(request.units())


def test_truncated_logits_cache_is_one_line_with_the_fix(request_tiny, tmp_path):
    request = request_tiny("calibrator=temperature", "split=0")
    run_all(request)
    cache = tmp_path / "data/logits/tiny.npz"
    cache.write_bytes(cache.read_bytes()[:-100])
    with pytest.raises(CorruptFile, match=r"tiny\.npz: differs .* run python -m") as caught:
        run_fit(request.units())
    program, *arguments = shlex.split(str(caught.value).partition("run python -m ")[2])
    assert program == "pipeline.logits"
    run_logits(request_of(*arguments).benchmark_settings())
    run_fit(request.units())


def test_the_suggested_command_names_what_is_not_the_default():
    start = "python -m pipeline.logits benchmark=digits"
    (settings,) = request_of("benchmark=digits").benchmark_settings()
    assert command_for(settings) == start
    (settings,) = request_of("benchmark=digits", "paths.data=/a b").benchmark_settings()
    assert command_for(settings) == f"{start} 'paths.data=/a b'"


def test_bad_input_leaves_nothing_half_written(request_tiny, tmp_path):
    write_npz(tmp_path / "tiny.npz", logits=np.full((9, 3), np.nan), labels=np.zeros(9, int))
    with pytest.raises(UnitsFailed, match="NaN or infinite"):
        run_logits(request_tiny().benchmark_settings())
    (note,) = tmp_path.glob("data/**/*.*")
    assert note.name == "tiny.failed.json"
    write_example(tmp_path / "tiny.npz")
    run_logits(request_tiny().benchmark_settings())
    assert not note.exists()


def test_what_a_run_leaves_that_is_killed_after_publishing_is_removed(request_tiny):
    request = request_tiny("calibrator=uncalibrated", "split=0")
    run_all(request)
    unit = request.units()[0]
    archives = (unit.files.fit, unit.files.scores)
    locks = [archive.running for archive in archives] + [running_path(unit.settings)]
    ended = subprocess.Popen(["true"])
    ended.wait()
    name = f"{re.sub(r'[^a-zA-Z0-9_]', '_', socket.gethostname())}-{ended.pid}.0123abcd.tmp.json"
    notes = [archive.run.with_name(f".{archive.run.stem}.{name}") for archive in archives]
    for path in (*locks, *notes):
        path.write_text("{}")
    run_all(request)
    assert [path.name for path in (*locks, *notes) if path.exists()] == []


def test_similarity_adds_its_utility_and_is_part_of_the_hash(request_tiny, tmp_path):
    write_npz(tmp_path / "s.npz", matrix=np.eye(3))
    overrides = [
        "calibrator=temperature", "split=0",
        "+benchmark.similarity._target_=pipeline.sources.similarity_file.file_similarity",
        f"+benchmark.similarity.path={tmp_path / 's.npz'}",
    ]  # fmt: skip
    run_all(request_tiny(*overrides))
    scores = tmp_path / "results/runs/tiny/temperature/split-0/metrics.json"
    first = read_json(scores)
    assert "u_w2v" in first["metrics"]
    before = times(tmp_path / "results")
    run_all(request_tiny("calibrator=temperature", "split=0"))
    assert "u_w2v" not in read_json(scores)["metrics"]
    changed = {p.name for p, t in times(tmp_path / "results").items() if before[p] != t}
    assert changed == {"metrics.json", "ecdf.npz", "run-metrics.json"}


def test_unnormalised_rows_are_scored(request_tiny, tmp_path):
    run_all(request_tiny("calibrator=isotonic_raw", "split=0"))
    folder = Path(tmp_path / "results/runs/tiny/isotonic_raw/split-0")
    assert read_json(folder / "metrics.json")["metrics"]["brier"] > 0


def test_write_json_is_used_for_receipts(tmp_path):
    write_json(tmp_path / "r.json", {"b": 1, "a": 2})
    assert list(read_json(tmp_path / "r.json")) == ["b", "a"]
