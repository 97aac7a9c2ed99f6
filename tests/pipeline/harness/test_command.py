"""From a command line to units: one line for a mistake, and its exit code."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import OmegaConf

from tests.pipeline.conftest import files_below, request_of, tiny_overrides
from tests.refusals import check_line, fails, refuses
from utility_calibration.metrics.errors import InputError
from utility_calibration.pipeline.harness.command import (
    is_user_error,
    one_line,
    user_errors_in_one_line,
)
from utility_calibration.pipeline.harness.parameters import (
    CONF,
    UsageError,
    check_sweep,
    names_in,
    searched,
)
from utility_calibration.pipeline.harness.units import composed, resolved, studied_of

ROOT = CONF.parent


def test_overrides_reach_every_unit():
    request = request_of("suite=cifar", "calibrator=dirichlet", "calibrator.on=logits", "seed=5")
    units = request.units()
    assert len(units) == 50
    for unit in units:
        assert unit.settings.calibrator["on"] == "logits"
        assert unit.settings.calibrator["seed"] == unit.settings.splits.seed == 5


@pytest.mark.parametrize("form", ["--config-dir={}", "-cd={}", "hydra.searchpath=[file://{}]"])
def test_a_calibrator_of_ones_own_folder_is_known(tmp_path, form):
    (tmp_path / "calibrator").mkdir()
    (tmp_path / "calibrator" / "mine.yaml").write_text("_target_: my.Calibrator\n")
    arguments = [form.format(tmp_path), "seed=3"]
    assert {"mine", "vector"} <= set(names_in("calibrator", arguments))
    config = composed([*searched(arguments), "calibrator=mine"])
    assert config.calibrator["_target_"] == "my.Calibrator"
    assert "mine" not in names_in("calibrator")


WRONG = ["benchmark.name='../../x'", "splits.count=0", "splits.calibration_fraction=1.0"]
OF_SCORES = ["class_weights=unifrom", "bins=0", "floor_utilities=0", "utility_batch=0", "suffix=-x"]


@pytest.mark.parametrize(
    "override", [*WRONG, "sources.device=gpu", *(f"evaluation.{text}" for text in OF_SCORES)]
)
def test_a_value_that_no_stage_knows_is_one_line(override):
    name = override.partition("=")[0]
    with fails(UsageError, f"{name}="):
        resolved(composed(["benchmark=digits", override]))


def test_an_objective_that_is_no_metric_is_refused_before_any_stage():
    with refuses("objective", number="nlll"):
        resolved(composed(["benchmark=digits", "objective=nlll"]))


def test_a_wrong_argument_is_the_users_error():
    with pytest.raises(InstantiationException) as caught:
        instantiate({"_target_": "utility_calibration.calibrators.TemperatureScaling", "step": 1})
    assert is_user_error(caught.value)
    check_line(one_line(caught.value), "'step'")


@pytest.mark.parametrize(
    ("file", "row", "told"),
    [
        ("my.npz", 7, "count from 0"),
        ("my.csv.gz", 7, "below the line of names"),
        ("my.csv", None, ""),
        ("", 7, ""),  # an array in Python
    ],
)
def test_a_row_of_a_file_is_named_with_where_rows_begin(file, row, told):
    first = InputError("wrong", field="labels")
    error = InputError.of_all([first, InputError("wrong, too", row=row)]).in_file(file)
    added = one_line(error).removeprefix(str(error))
    assert told in added
    assert bool(added) == bool(told)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_one_line_that_says_what_to_do(number):
    error = OSError(number, os.strerror(number), "a.npz")
    assert is_user_error(error)
    check_line(one_line(error), "a.npz", "make room")


def test_a_device_without_memory_is_one_line_that_says_what_to_set():
    error = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED\nwhen calling `cublasCreate`")
    assert is_user_error(error)
    check_line(one_line(error), "memory", "jobs=1")


MISTAKES = [  # a command, its exit code, and the names that its one line has
    ("fit benchmark=cifar", 2, "benchmark/cifar cifar10_repvgg digits"),
    ("fit calibrator=temprature", 2, "calibrator/temprature temperature isotonic"),
    ("fit suite.calibrators=[nothing]", 2, "calibrator/nothing isotonic"),
    ("fit suite.calibrators=vector", 2, "suite.calibrators ListConfig"),
    ("fit calibrator=vector calibrator.l3=1", 2, "calibrator.l3 --cfg"),
    ("fit paths.data=~/mine", 2, "paths.data=~/mine quotes"),
    ("fit benchmrk=yahoo", 2, "benchmrk --cfg"),
    ("fit benchmark.source.data=/x", 2, "benchmark.source.data --cfg"),
    ("fit batch_size=0 benchmark=yahoo", 2, "batch_size --cfg"),
    ("fit benchmark=digits", 1, "digits utility-calibration logits"),
    ("fit params=nowhere.yaml", 2, "params=nowhere.yaml"),
    ("fit split=10", 2, "split=10 0 9"),
    ("fit benchmark=file", 2, "benchmark.source.path"),
    ("logits benchmark=file benchmark.source.path=none.npz", 1, "none.npz"),
    ("logits benchmark=digits +benchmark.source.sed=1", 1, "source 'sed'"),
    ("logits benchmark=digits benchmark.source._target_=nonsense", 1, "nonsense"),
    ("fit benchmark=digits benchmark.metrics=[u_cwo]", 1, "u_cwo u_cwe?"),
]


@pytest.mark.parametrize(("line", "code", "told"), MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake_is_one_line(line, code, told, tmp_path, monkeypatch, capsys):
    module, *arguments = line.split()
    folders = [f"paths.data={tmp_path}", f"paths.results={tmp_path}"]
    monkeypatch.chdir(tmp_path)  # the logits of the clone count, where it has some
    monkeypatch.setattr(sys, "argv", [module, *arguments, *folders])
    with pytest.raises(SystemExit) as ended:
        import_module(f"utility_calibration.pipeline.{module}").main()
    output = capsys.readouterr()
    assert ended.value.code == code, output.err
    check_line(output.err.removesuffix("\n"), *told.split())
    assert "Traceback" not in output.err + output.out
    assert not [name for name in files_below(tmp_path) if name.endswith((".npz", ".csv"))]


@pytest.mark.parametrize(
    ("arguments", "benchmarks", "calibrators"),
    [
        ("suite.benchmarks=[digits,synthetic] benchmark.rows=50", ["digits", "synthetic"], 2),
        ("suite=cifar benchmark=digits", None, 2),
        ("calibrator=vector", ["digits"], None),
        ("benchmark=digits calibrator=vector", None, None),
    ],
)
def test_what_cfg_shows_is_what_will_run(arguments, benchmarks, calibrators, monkeypatch, capsys):
    methods = [] if "calibrator=" in arguments else ["suite.calibrators=[vector,vector_brier]"]
    command = ["fit", *arguments.split(), *methods, "--cfg", "job"]
    monkeypatch.setattr(sys, "argv", command)
    import_module("utility_calibration.pipeline.fit").main()
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown.keys() >= {"suite", "splits"} and "each" not in shown
    assert list(shown.get("benchmarks", ())) == (benchmarks or [])
    assert len(shown.get("calibrators", ())) == (calibrators or 0)
    every = shown.get("benchmarks") or {"digits": shown["benchmark"]}
    assert {name: entry["name"] for name, entry in every.items()} == {name: name for name in every}
    assert "???" not in str(shown)
    if "rows" in arguments:
        assert [entry["rows"] for entry in every.values()] == [50, 50]


def test_what_cfg_shows_has_the_settings_of_params(tmp_path, monkeypatch, capsys):
    lines = (ROOT / "params.yaml").read_text().replace("\nseed: 0\n", "\nseed: 7\n")
    (tmp_path / "mine.yaml").write_text(lines)
    command = ["fit", f"params={tmp_path / 'mine.yaml'}", "--cfg", "job"]
    monkeypatch.setattr(sys, "argv", command)
    import_module("utility_calibration.pipeline.fit").main()
    shown = yaml.safe_load(capsys.readouterr().out)
    assert (shown["seed"], shown["suite"]["name"]) == (7, "digits") and "hydra" not in shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_program_by_its_code_and_one_line(number, code, capsys):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of `make test &` ignores it
    with pytest.raises(SystemExit) as ended, user_errors_in_one_line():
        signal.raise_signal(number)
    assert ended.value.code == code
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (["-S", "-m", "utility_calibration", "fit"], "make setup"),  # without packages
        (["-m", "pipeline.fit"], "utility-calibration fit"),
        (["-m", "utility_calibration", "fitt"], "fitt"),
        (["-m", "utility_calibration.pipeline.fit", "benchmark=digits", "seed=-1"], "seed=-1"),
        (["-m", "utility_calibration.pipeline.status", "seed=-1"], "seed=-1"),
        (["scripts/score.py", "my.csv"], "utility-calibration score"),
        (["-c", "import metrics"], "utility_calibration.metrics"),
        (["-c", "from calibrators.temperature import x"], "utility_calibration.calib"),
    ],
)
def test_another_name_or_a_python_without_packages_is_told_in_one_line(program, told):
    command = [sys.executable, *program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2) and told in done.stderr.splitlines()[-1], done.stderr
    assert done.stderr.count("\n") == 1 or "-c" in program


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("arguments", "at_once"),
    [(["--help"], "1"), (["fit", "--help"], ""), (["apply", "--help"], ""), (["status"], "")],
)
def test_output_that_nobody_reads_or_takes_leaves_no_traceback(arguments, at_once, tmp_path):
    command = [sys.executable, "-m", "utility_calibration", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": at_once, "PYTHONPATH": str(ROOT)}
    reader, writer = os.pipe()
    os.close(reader)
    for writes, lines in ((writer, 0), (os.open("/dev/full", os.O_WRONLY), 1)):
        to = {"cwd": tmp_path, "env": environment, "stdout": writes, "stderr": subprocess.PIPE}
        told = subprocess.run(command, **to, check=False).stderr
        os.close(writes)
        assert told.count(b"\n") == lines and b"Error" not in told, told


def test_a_multirun_ends_with_a_line_for_each_job(evaluated_once, tmp_path, monkeypatch, capsys):
    data = f"paths.data={tmp_path / 'data'}"
    shutil.copytree(evaluated_once / "data", tmp_path / "data")
    tiny = [
        text
        for text in tiny_overrides(evaluated_once / "tiny.npz", tmp_path)
        if not text.startswith(("paths.data=", "calibrator="))
    ]
    command = [
        *("evaluate", "--multirun", *tiny, data, f"hydra.sweep.dir={tmp_path / 'sweep'}"),
        *("calibrator=temperature,vector", "split=0,70", "objective=nll"),
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:  # there is no split 70
        import_module("utility_calibration.pipeline.evaluate").main()
    assert ended.value.code == 2
    table = [line.split() for line in capsys.readouterr().out.splitlines()[-5:]]
    assert table[0] == ["job", "settings", "objective"]
    jobs = {tuple(line[1:-1]): line[-1] for line in table[1:]}
    for method in ("temperature", "vector"):
        assert jobs[f"calibrator={method}", "split=70"] == "failed"
        assert 0 < float(jobs[f"calibrator={method}", "split=0"]) < 2


OWN = ["paths.data=d/${calibrator.loss}", "paths.results=r/${calibrator.loss}"]


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["calibrator.loss=nll,brier"], "calibrator.loss"),
        (["calibrator.loss=nll,brier", OWN[0]], "calibrator.loss"),
        (["calibrator.loss=nll,brier", *OWN], None),
        (["benchmark=digits", "calibrator=vector,temperature", "split=range(3)"], None),
        (["tuning=quick,paper"], "hydra:runtime.choices.tuning"),
        (["+splits.seed=choice(1,2)"], "splits.seed"),
        (["benchmark=calarena", "benchmark.source.model=beit,vit"], None),
        (["benchmark=digits", "benchmark.source.hidden=8,12"], "benchmark.source.hidden"),
        (["hydra.launcher.n_jobs=1,2", "suite.benchmarks=[a,b]"], None),
    ],
)
def test_jobs_that_would_replace_each_others_files_are_refused(arguments, key):
    check_sweep(arguments)  # not --multirun: Hydra says that a list needs it
    if key is None:
        check_sweep(["--multirun", *arguments])
        return
    with fails(UsageError, f"paths.data=data/${{{key}}}"):
        check_sweep(["-m", *arguments])


@pytest.mark.slow
def test_a_sweep_on_two_cores_gives_the_bytes_of_a_plain_run(evaluated_once, tmp_path):
    command = [
        sys.executable, "-m", "utility_calibration", "sweep",
        *tiny_overrides(evaluated_once / "tiny.npz", tmp_path),
        "suite.dynamics=[]", "suite.users=[]",
        f"hydra.sweep.dir={tmp_path / 'multirun'}", "suite.calibrators=[temperature,vector]",
        "hydra/launcher=cores", "hydra.launcher.n_jobs=2",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("data/fits", "data/scores", "results/scores"):
        found = files_below(tmp_path / part)
        found.pop("all.csv", None)  # the report wrote it, which the plain run leaves out
        assert found == files_below(evaluated_once / part)
    assert (tmp_path / "results/report-tiny.html").is_file()


def test_a_part_of_a_suite_is_studied_on_its_own_benchmarks_alone():
    part = ("cifar10_resnet", "cifar10_repvgg")
    config = OmegaConf.create(
        {"suite": {"dynamics": ["cifar100_resnet"], "users": ["cifar100_resnet", "cifar10_resnet"]}}
    )
    assert studied_of(config, "dynamics", part) == ()
    assert studied_of(config, "users", part) == ("cifar10_resnet",)
    assert studied_of(config, "dynamics", ("cifar100_resnet",)) == ("cifar100_resnet",)
    assert studied_of(OmegaConf.create({"suite": {}}), "users", part) == ()
