"""The programs as a person calls them: one line for a mistake, a kill that costs one unit."""

import signal
import subprocess
import sys
import time
import warnings
from subprocess import PIPE

import numpy as np
import pytest
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf
from yaml import YAMLError

from pipeline.harness.artifacts import read_json, write_npz
from pipeline.harness.command import (
    CONF,
    is_user_error,
    literal,
    one_line,
    user_errors_in_one_line,
)
from tests.pipeline.conftest import write_example

ROOT = CONF.parent


def call(module, *arguments, **options):
    command = [sys.executable, "-m", f"pipeline.{module}", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options
    )


def written_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("module", "arguments", "code", "words"),
    [
        ("fit", ["benchmark=cifar"], 2, ["benchmark=cifar: no such name", "known:", "digits"]),
        ("fit", ["calibrator=temprature"], 2, ["did you mean temperature?", "isotonic, "]),
        ("fit", ["calibrator=../x"], 2, ["calibrator=../x: no such name; known:", "isotonic, "]),
        (
            "fit",
            ["hydra/launcher=slrm"],
            2,
            ["error: hydra/launcher=slrm: no such name (did you mean slurm?)"],
        ),
        ("fit", ['calibrator=../x"'], 2, ['calibrator=../x"', "quote its value: key='value'"]),
        ("evaluate", ["suite=all"], 2, ["suite=all", "paper"]),
        ("fit", ["suite.benchmarks=[nothing]"], 2, ["benchmark=nothing", "known:"]),
        ("fit", ["suite.calibrators=[nothing]"], 2, ["calibrator=nothing", "known:"]),
        ("fit", ["calibrator=vector", "calibrator.l3=1"], 2, ["calibrator.l3: no such setting"]),
        ("fit", ["calibrator.l2=1"], 2, ["calibrator=<name> first"]),
        ("fit", ["split=10"], 2, ["split=10", "0 to 9"]),
        ("logits", ["splits.calibration_fraction=2"], 2, ["splits.calibration_fraction=2"]),
        ("fit", ["splits.count=0"], 2, ["splits.count=0", "at least 1"]),
        ("fit", ["splits.count=20000000"], 2, ["splits.count=20000000", "at most 1000"]),
        ("evaluate", ["seed=-1"], 2, ["seed=-1", "from 0"]),
        ("fit", ["benchmark=file"], 2, ["add benchmark.source.path=... to the command"]),
        ("logits", ["benchmark=file", "benchmark.source.path=none.npz"], 1, ["none.npz"]),
        ("fit", ["split=1,2"], 1, ["split"]),
    ],
)
def test_a_mistake_is_one_line(module, arguments, code, words, tmp_path):
    folders = [f"paths.data={tmp_path}", f"paths.results={tmp_path}"]
    result = call(module, *arguments, *folders)
    assert result.returncode in (code, 2), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert written_below(tmp_path) <= {"logits/digits.failed.json", "logits/file.failed.json"}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": np.zeros((4, 3))}, ["labels"]),
        ({"logits": np.full((4, 3), np.nan), "labels": np.zeros(4, int)}, ["NaN"]),
        ({"logits": np.zeros((4, 3)), "labels": np.full(4, 3)}, ["labels", "0 to 2"]),
        ({"logits": np.zeros((4, 3)), "labels": np.zeros(5, int)}, ["5 labels for 4 rows"]),
    ],
)
def test_a_bad_file_is_one_line_and_writes_nothing(arrays, words, tmp_path):
    write_npz(tmp_path / "bad.npz", **arrays)
    result = call(
        "fit", "benchmark=file", f"benchmark.source.path={tmp_path / 'bad.npz'}",
        f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / 'results'}",
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in ["bad.npz", *words]), result.stderr
    assert written_below(tmp_path) == {"bad.npz", "data/logits/file.failed.json"}  # for status


def test_a_configuration_that_is_no_yaml_is_one_line_with_its_place(tmp_path):
    (tmp_path / "x.yaml").write_text("loss: brier\nloss: likelihood\n")
    with pytest.raises(YAMLError) as caught:
        OmegaConf.load(tmp_path / "x.yaml")
    assert is_user_error(caught.value)
    assert "\n" not in one_line(caught.value)
    assert "x.yaml" in one_line(caught.value) and "duplicate key loss" in one_line(caught.value)


def test_a_failing_unit_is_one_line_after_its_traceback(tmp_path):
    write_example(tmp_path / "tiny.npz")
    result = call(
        "fit", "benchmark=file", f"benchmark.source.path={tmp_path / 'tiny.npz'}", "split=0",
        "calibrator=vector", "calibrator.l2=abc", f"paths.data={tmp_path / 'data'}",
        f"paths.results={tmp_path / 'results'}",
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr.startswith("error: file vector split 0: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_cfg_job_prints_the_configuration():
    result = call("fit", "benchmark=digits", "calibrator=dirichlet", "--cfg", "job")
    assert result.returncode == 0
    assert "_target_: calibrators.DirichletCalibration" in result.stdout


SLOW = """
import time
from calibrators import Uncalibrated

class Slow(Uncalibrated):
    def _fit(self, logits, labels):
        time.sleep(0.5)
        super()._fit(logits, labels)
"""


@pytest.fixture
def slow_run(tmp_path, monkeypatch):
    """A fit of six units, half a second each: start it, wait for two of them, send it a signal."""
    write_example(tmp_path / "tiny.npz")
    (tmp_path / "slow_calibrator.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    arguments = [
        "benchmark=file", "benchmark.name=tiny", f"benchmark.source.path={tmp_path / 'tiny.npz'}",
        f"paths.data={tmp_path / 'data'}", f"paths.results={tmp_path / 'results'}",
        "calibrator=uncalibrated", "calibrator._target_=slow_calibrator.Slow", "splits.count=6",
    ]  # fmt: skip
    results = tmp_path / "results/runs/tiny/uncalibrated"

    def run(number, *more):
        command = [sys.executable, "-m", "pipeline.fit", *arguments, *more]
        child = subprocess.Popen(command, cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True)
        deadline = time.monotonic() + 120
        while len(list(results.glob("*/fit.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
        return child.returncode, errors, [*arguments, *more], results

    return run


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_continues_where_it_stopped(slow_run, number):
    code, errors, arguments, results = slow_run(number, "jobs=2")
    if number != signal.SIGKILL:
        assert code == 128 + number
        assert errors.count("\n") == 1 and "finished units are kept" in errors, errors
    time.sleep(1.0)  # its workers end by themselves
    done = {path: path.stat().st_mtime_ns for path in results.glob("*/fit.json")}
    assert 2 <= len(done) < 6
    again = call("fit", *arguments)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in done} == done
    records = [read_json(path) for path in sorted(results.glob("*/fit.json"))]
    assert [record["split"] for record in records] == list(range(6))
    assert not list(results.rglob(".*")) + list(results.rglob("running*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("program", ["-m pipeline.fit", "scripts/score.py", "scripts/apply.py"])
def test_a_signal_during_the_imports_is_one_line(program, number):
    command = [sys.executable, "-X", "importtime", *program.split()]
    child = subprocess.Popen(command, cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True)
    assert child.stderr is not None
    for line in child.stderr:
        if line.rstrip().endswith((" pipeline.harness", " numpy")):  # amid what it needs
            break
    child.send_signal(number)
    rest = child.stderr.read()
    child.communicate(timeout=60)
    told = [line for line in rest.splitlines() if not line.startswith("import time:")]
    assert (child.returncode, told) == (
        128 + number,
        ["ended before it began; nothing was changed"],
    )


def test_a_sweep_fills_the_same_folders(tmp_path):
    write_example(tmp_path / "tiny.npz")
    result = call(
        "fit", "--multirun", "benchmark=file", "benchmark.name=tiny", "split=0,1",
        f"benchmark.source.path={tmp_path / 'tiny.npz'}", f"paths.data={tmp_path / 'data'}",
        f"paths.results={tmp_path / 'results'}", "calibrator=uncalibrated,temperature",
        f"hydra.sweep.dir={tmp_path / 'multirun'}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert len(list(tmp_path.glob("results/runs/tiny/*/split-[01]/fit.json"))) == 4


def test_a_program_ends_without_a_search_for_garbage():
    program = """
import atexit, gc
from pipeline.harness.command import user_errors_in_one_line
atexit.register(lambda: print(gc.get_freeze_count() > 1000))
with user_errors_in_one_line():
    pass
"""
    asked = [sys.executable, "-c", program]
    assert subprocess.check_output(asked, text=True, cwd=ROOT) == "True\n"


def test_a_warning_is_one_line(capsys):
    with user_errors_in_one_line():
        warnings.warn("few points;\ngive more", stacklevel=1)
    assert capsys.readouterr().err == "warning: few points; give more\n"


def test_errors_of_the_project_hydra_and_the_disk_are_the_users():
    assert is_user_error(ConfigCompositionException("x"))
    assert is_user_error(PermissionError("x"))
    assert not is_user_error(ZeroDivisionError())
    assert not is_user_error(ValueError("inside NumPy"))
    assert one_line(ValueError("a\n  b\n\nobject_type=dict")) == "a b"
    assert one_line(ZeroDivisionError()) == "ZeroDivisionError"


@pytest.mark.parametrize(
    "text", ["out/${x}/b", r"a\${x}", r"a\\${oc.env:HOME}", "plain", "$x", "a${", "${a}${b}"]
)
def test_a_literal_text_is_not_interpolated(text) -> None:
    config = OmegaConf.create({"key": ""})
    config.key = literal(text)
    assert OmegaConf.to_container(config, resolve=True) == {"key": text}
