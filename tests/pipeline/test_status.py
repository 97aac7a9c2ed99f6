"""status: what is done, missing, stale and why, failed and why."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pipeline.evaluate import run_evaluate
from pipeline.fit import run_fit
from pipeline.harness.command import CONF, UnitsFailed
from pipeline.logits import run_logits
from pipeline.status import states
from tests.pipeline.conftest import tiny_overrides


def found(request):
    """How many units are in which state, for which reason."""
    return Counter((state.name, state.why) for state in states(request.units()))


def test_done_and_missing_units_are_told_apart(request_made, tmp_path):
    assert found(request_made()) == {("done", ""): 6}
    (tmp_path / "data/fits/tiny/vector/0.npz").unlink()
    (tmp_path / "data/scores/tiny/vector/1.npz").unlink()
    assert found(request_made("calibrator=vector")) == {
        ("missing", "not fitted"): 1,
        ("missing", "not evaluated"): 1,
        ("done", ""): 1,
    }
    shutil.rmtree(tmp_path / "data/logits")
    assert found(request_made()) == {("missing", "no logits"): 6}


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("seed=1", "other settings of splits"),
        ("calibrator.l2=0.5", "other settings of calibrator"),
        ("evaluation.bins=5", "other settings of evaluation"),
    ],
)
def test_stale_units_say_why(request_made, override, why):
    assert found(request_made("calibrator=vector", override)) == {("stale", why): 3}


def test_units_whose_logits_or_fits_changed_are_stale(request_made, monkeypatch):
    why = "other logits, other fit or other code"
    for stage in ("fit", "evaluate"):
        with monkeypatch.context() as patch:
            patch.setattr(f"pipeline.{stage}.code_digest", lambda *targets: "other code")
            assert found(request_made()) == {("stale", why): 6}
    run_fit(request_made("calibrator=vector", "calibrator.l2=0.5").units())
    changed = request_made("calibrator=vector", "calibrator.l2=0.5")
    assert found(changed) == {("stale", why): 3}
    run_evaluate(changed.units())
    assert found(changed) == {("done", ""): 3}


def test_a_failed_unit_says_why_until_it_succeeds(request_made, monkeypatch):
    request = request_made("calibrator=vector", "split=0", "calibrator.l2=0.5")
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.fit.made_of", lambda *_, **__: 1 / 0)
        with pytest.raises(UnitsFailed):
            run_fit(request.units())
    assert found(request) == {("failed", "ZeroDivisionError: division by zero"): 1}
    run_fit(request.units())
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.evaluate.held_out", lambda *_: 1 / 0)
        with pytest.raises(UnitsFailed):
            run_evaluate(request.units())
    assert found(request) == {("failed", "ZeroDivisionError: division by zero"): 1}
    run_evaluate(request.units())
    assert found(request) == {("done", ""): 1}


def test_units_whose_logits_could_not_be_made_failed_with_the_reason(request_tiny, tmp_path):
    request = request_tiny("calibrator=temperature")
    (tmp_path / "tiny.npz").rename(tmp_path / "away.npz")
    with pytest.raises(UnitsFailed):
        run_logits(request.benchmark_settings())
    (((name, why), count),) = found(request).items()
    assert (name, count) == ("failed", 3)
    assert str(tmp_path / "tiny.npz") in why


@pytest.fixture
def copied(tmp_path):
    """A copy of this repository's code that a test may edit."""
    folder = tmp_path / "copy"
    compiled = shutil.ignore_patterns("__pycache__")
    for name in ("calibrators", "conf", "metrics", "pipeline"):
        shutil.copytree(CONF.parent / name, folder / name, ignore=compiled)
    return folder


def run(folder, *arguments):
    command = [sys.executable, *arguments]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def edit(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_after_an_edit_of_metric_code_no_unit_is_done(copied, evaluated_once):
    settings = tiny_overrides(evaluated_once / "tiny.npz", evaluated_once)
    asked = ("-m", "pipeline.status", *settings, "calibrator=vector")
    edit(copied / "metrics/binned.py", "# a comment\n")
    assert "3 of 3 units are done" in run(copied, *asked)
    edit(copied / "metrics/binned.py", "EDITED = 1\n")
    told = run(copied, *asked)
    assert "0 of 3 units are done" in told
    assert "stale: 3 units (other logits, other fit or other code)" in told


def test_worst_intervals_depend_on_the_code_that_makes_them(copied, request_made, monkeypatch):
    program = "from pipeline.harness.code import code_digest; print(code_digest({!r}))"
    digests = [("-c", program.format(name)) for name in (
        "pipeline.scoring.across_splits", "metrics.scorecard.scorecard")]  # fmt: skip
    before = [run(copied, *one) for one in digests]
    edit(copied / "pipeline/scoring/worst.py", "EDITED = 1\n")
    after = [run(copied, *one) for one in digests]
    assert before[0] != after[0]
    assert before[1] == after[1]  # the metrics stay
    request = request_made("calibrator=vector")
    worst = request.units()[0].scores_path.with_name("worst.npz")
    written = worst.stat().st_mtime_ns
    run_evaluate(request.units())
    assert worst.stat().st_mtime_ns == written
    monkeypatch.setattr("pipeline.scoring.across_splits.code_digest", lambda *targets: "other")
    run_evaluate(request.units())
    assert worst.stat().st_mtime_ns != written
