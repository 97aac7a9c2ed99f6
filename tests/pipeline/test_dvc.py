"""dvc.yaml is a valid pipeline with one fit and one evaluation stage per calibrator."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pipeline.parameters import asked_of_make, read_parameters, write_parameters
from pipeline.record import stages_of
from pipeline.repro import arguments_of

from pipeline import record
from pipeline.harness.artifacts import write_json
from pipeline.harness.command import CONF, override
from pipeline.harness.units import SelectionError, composed, resolved
from tests.pipeline.conftest import request_of


def test_stages_are_listed():
    result = subprocess.run(
        [sys.executable, "-m", "dvc", "stage", "list", "--name-only"],
        cwd=CONF.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    names = set(result.stdout.split())
    assert {"logits", "fit@vector", "evaluate@patching", "dynamics", "report"} <= names
    assert len(names) == 17


SUITE = "suite=digits"
NASTY = ["a'b", 'a"b', "a${b}c", "${oc.env:HOME}", "a b,c[1]{x}=(y)", "end\\", "'; touch x; echo '"]


@pytest.mark.parametrize("text", NASTY)
def test_a_folder_of_any_name_reaches_its_stage_as_it_is(text):
    name, arguments = arguments_of("logits", {"suite": "digits", "precomputed": text})
    settings = resolved(composed(arguments))
    assert (name, settings["paths"]["precomputed"]) == ("logits", text)


def test_no_text_of_params_yaml_stands_in_a_command():
    stages = yaml.safe_load((CONF.parent / "dvc.yaml").read_text())["stages"].values()
    assert {stage.get("do", stage)["cmd"] for stage in stages} == {"python -m pipeline.repro"}


def test_the_stage_and_its_calibrator_come_from_dvc():
    arguments = arguments_of("fit@vector", {"suite": "cifar", "precomputed": "/x"})
    assert arguments == ("fit", ["suite=cifar", "calibrator=vector"])
    of_make = ("record", ["suite=cifar", "paths.precomputed=/x"])
    assert arguments_of("record", {"suite": "cifar", "precomputed": "/x"}) == of_make
    with pytest.raises(SelectionError, match=r"DVC_STAGE=nothing: expected one of logits"):
        arguments_of("nothing", {})


ODD = (
    "/data/日本",
    "null",
    "True",
    "123",
    ".5",
    "a b ",
    " ",
    "it's",
    "a\\",
    "${x}",
    "$(id)",
    "a,b",
)


@pytest.mark.parametrize("folder", ODD)
def test_a_folder_in_params_yaml_may_have_any_name(folder):
    _, arguments = arguments_of("logits", {"suite": "digits", "precomputed": folder})
    assert resolved(composed([*arguments, "benchmark=digits"]))["paths"]["precomputed"] == folder


@pytest.mark.parametrize("name", ["../../x", "/x", "a/b", ".hidden", ""])
def test_a_benchmark_keeps_to_its_folder(name):
    arguments = ["benchmark=file", override("benchmark.name", name)]
    with pytest.raises(SelectionError, match="becomes part of a file's name"):
        resolved(composed([*arguments, "benchmark.source.path=x.npz"]))


SMALL = [
    ("conf/config.yaml", "count: 10", "count: 1"),
    ("conf/evaluation/default.yaml", "utilities: 1500", "utilities: 20"),
    ("conf/evaluation/default.yaml", "floor_repetitions: 400", "floor_repetitions: 4"),
    ("conf/evaluation/default.yaml", "bootstrap_repetitions: 200", "bootstrap_repetitions: 4"),
    ("conf/suite/digits.yaml", "  - digits\ndynamics:", "  - digits\ndynamics: []\nunused:"),
    *(("conf/shared/calibrators.yaml", f"  - {name}\n", "")
      for name in ("dirichlet", "isotonic", "vector", "patching")),
    ("conf/shared/calibrators.yaml", "  - logit_shift ", "# "),
]  # fmt: skip


def shell(folder, *command, code=0):
    # Compiling for another folder would take longer than to do without.
    fast = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        command, cwd=folder, env=fast, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def dvc(folder, *arguments, code=0):
    return shell(folder, sys.executable, "-m", "dvc", *arguments, code=code)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A repository of this code, with two calibrators and two splits, after `dvc repro`."""
    folder = tmp_path_factory.mktemp("dvc") / "here"
    listed = shell(
        CONF.parent, "git", "ls-files", "--cached", "--others", "--exclude-standard",
        "calibrators", "conf", "metrics", "pipeline",
    )  # fmt: skip
    kept = [".dvc/.gitignore", ".dvc/config", ".dvcignore", ".gitignore", "results/.gitignore"]
    for name in [*listed.splitlines(), *kept, "dvc.yaml", "params.yaml", "Makefile"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CONF.parent / name, folder / name)
    for name, old, new in SMALL:
        text = (folder / name).read_text()
        assert old in text, (name, old)
        (folder / name).write_text(text.replace(old, new))
    shell(folder, "git", "init", "-q")
    for key, value in (("user.name", "Nobody"), ("user.email", "nobody@localhost")):
        shell(folder, "git", "config", key, value)
    dvc(folder, "repro")
    commit(folder)
    return folder


def commit(folder):
    shell(folder, "git", "add", ".")
    shell(folder, "git", "commit", "-q", "-m", "run")


def test_what_was_pushed_is_up_to_date_in_a_clone_elsewhere(project, tmp_path):
    dvc(project, "remote", "add", "-d", "folder", str(tmp_path / "remote"))
    dvc(project, "push")
    clone = tmp_path / "another path" / "there"
    shell(tmp_path, "git", "clone", "-q", str(project), str(clone))
    shutil.copyfile(project / ".dvc/config", clone / ".dvc/config")
    assert "deleted:" in dvc(clone, "status")
    dvc(clone, "pull")
    assert "up to date" in dvc(clone, "status")
    assert "Running stage" not in dvc(clone, "repro")
    assert (clone / "results/suites/digits/logits/digits.npz").is_file()
    assert json.loads((clone / "results/metrics.json").read_text())["digits"]["temperature"]
    by_hand = shell(clone, sys.executable, "-m", "pipeline.fit", "suite=digits")
    assert "fit: nothing to do, 2 up to date" in by_hand
    assert not (clone / "data/work").exists()  # no logits were computed


def test_plots_need_no_network(project):
    dvc(project, "plots", "show")
    page = (project / "dvc_plots/index.html").read_text()
    assert "ecdf_digits.png" in page
    assert "http" not in page


def test_a_failed_run_tells_why_and_leaves_the_parameters_as_they_were(project):
    before = (project / "params.yaml").read_bytes()
    told = dvc(project, "exp", "run", "-S", "suite=digit", code=255)
    assert "error: suite=digit: no such name (did you mean digits?)" in told
    (project / "params.yaml").write_bytes(before)  # DVC's own: it keeps what -S changed
    environment = f"VENV={Path(sys.executable).parents[1]}"
    make = ("make", "--old-file=setup", environment, "repro")
    told = shell(project, *make, "PRECOMPUTED=/no/such/folder", code=2)
    assert "paths.precomputed=/no/such/folder: no such folder" in told
    assert (project / "params.yaml").read_bytes() == before
    assert shell(project, "git", "status", "--short", "params.yaml") == ""
    told = shell(project, *make, "PRECOMPUTED=/no/such 'old' $$(touch it) folder", code=2)
    assert "/no/such 'old' $(touch it) folder: no such folder" in told
    assert not (project / "it").exists()
    told = shell(project, *make, "SUITE=digitz", code=2)
    assert "SUITE=digitz: no such suite; known: " in told


def test_make_repro_of_another_suite_runs_its_units_at_once_and_dvc_records_them(project):
    suite = (project / "conf/suite/digits.yaml").read_text()
    (project / "conf/suite/few.yaml").write_text(suite.replace("name: digits", "name: few"))
    shutil.rmtree(project / "results/runs/digits/temperature")
    environment = f"VENV={Path(sys.executable).parents[1]}"
    told = shell(project, "make", "--old-file=setup", environment, "repro", "SUITE=few")
    assert "temperature" in told
    assert "fit: nothing to do, 2 up to date" in told
    assert "Running stage" not in told
    assert "suite: few" in (project / "params.yaml").read_text()
    assert (project / "results/suites/few/report.json").exists()
    assert "up to date" in dvc(project, "status")


@pytest.fixture(scope="module")
def made(project, tmp_path_factory):
    """A clone of the project as it was committed, after `make repro`, and what that told."""
    clone = tmp_path_factory.mktemp("made") / "clone"
    shell(project, "git", "clone", "-q", ".", str(clone))
    (clone / "dvc.lock").unlink()
    environment = f"VENV={Path(sys.executable).parents[1]}"
    return clone, shell(clone, "make", "--old-file=setup", environment, "repro")


def test_what_make_records_is_what_the_stages_would(project, made):
    """`make repro` has DVC record the sweep's units without running their stages."""
    clone, told = made
    assert "dvc repro: all stages are up to date" in told
    once = (
        "logits: nothing",
        "fit: nothing",
        "evaluate: nothing",
        "dynamics: nothing",
        "{html,md}",
    )
    assert [told.count(line) for line in once] == [1] * len(once)  # no stage ran beside
    expected = shell(project, "git", "show", "HEAD:dvc.lock")
    assert yaml.safe_load((clone / "dvc.lock").read_text()) == yaml.safe_load(expected)
    environment = f"VENV={Path(sys.executable).parents[1]}"
    again = shell(clone, "make", "--old-file=setup", environment, "repro")
    assert "wrote" not in again and "dvc repro: all stages are up to date" in again
    (kept,) = clone.glob("results/suites/*/logits/digits.npz")
    assert kept.stat().st_nlink > 1  # a link to the file that stages work on


def test_what_was_edited_is_done_anew_and_recorded(made):
    clone, _ = made
    fit = clone / "results/runs/digits/temperature/split-0/fit.json"
    before = fit.read_text()
    settings = clone / "conf/calibrator/temperature.yaml"
    settings.write_text(settings.read_text().replace("loss: likelihood", "loss: brier"))
    told = shell(clone, "env", "DVC_STAGE=record", sys.executable, "-m", "pipeline.repro")
    assert fit.read_text() != before
    assert told.count("wrote results/report.{html,md}") == 1
    assert "up to date" in dvc(clone, "status")


EDITS = """
from pathlib import Path
import pipeline.record
whole = pipeline.record.sweep
def sweep(request, config):
    whole(request, config)
    path = Path("conf/calibrator/vector.yaml")
    path.write_text(path.read_text() + "# edited\\n")
pipeline.record.sweep = sweep
pipeline.record.main()
"""


def test_nothing_is_recorded_of_what_was_edited_meanwhile(made):
    clone, _ = made
    before = (clone / "dvc.lock").read_bytes()
    told = shell(clone, sys.executable, "-c", EDITS, "suite=digits")
    assert "edited meanwhile: DVC looks at every stage by itself" in told
    assert (clone / "dvc.lock").read_bytes() == before
    assert "fit@uncalibrated" in dvc(clone, "status")


def test_what_dvc_cannot_record_is_told_in_one_line(project, tmp_path):
    shell(tmp_path, "git", "clone", "-q", str(project), str(tmp_path / "clone"))
    told = shell(
        tmp_path / "clone", sys.executable, "-c",
        "from pipeline.record import commit; commit(['fit@nothing'])", code=1,
    )  # fmt: skip
    assert "NotRecorded: dvc commit: " in told.splitlines()[-1]


def test_stages_are_recorded_of_methods_that_the_suite_has():
    of_vector = ["logits", "fit@vector", "evaluate@vector"]
    assert stages_of(["vector", "dirichlet_brier"], last=False) == of_vector
    assert stages_of(["vector"], last=True) == [*of_vector, "dynamics", "report"]
    every = composed(["suite=digits"]).suite.calibrators
    assert stages_of(every, last=False) == ["logits", "fit", "evaluate"]
    assert stages_of(every, last=True) == []


@pytest.mark.parametrize("lost", ["dynamics", "report"])
def test_what_lacks_a_receipt_is_made_with_all_that_shows_it(tmp_path, monkeypatch, lost):
    made = []
    monkeypatch.setattr(record, "run_dynamics", lambda request: made.append(request.benchmarks))
    monkeypatch.setattr("pipeline.report.run_report", lambda request: made.append("report"))
    overrides = ["suite=digits", f"paths.results={tmp_path}"]
    request, config = request_of(*overrides), composed(overrides)
    for name in ("dynamics", "report"):
        write_json(tmp_path / f"suites/digits/{name}.json", {})
    assert not record.finish(request, config) and not made
    (tmp_path / f"suites/digits/{lost}.json").unlink()
    assert record.finish(request, config)
    assert made == [("digits",), "report"]


def test_what_a_run_compiles_is_no_edit(monkeypatch, tmp_path):
    monkeypatch.setattr(record, "CONF", tmp_path / "conf")
    for name in ("conf/config.yaml", "metrics/binned.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    before = record.sources()
    assert len(before) == 2
    for name in ("__pycache__/kernels-1/x.nbi", ".binned.py.swp", "binned.py~"):
        (tmp_path / "metrics" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "metrics" / name).write_text("2")
    assert record.sources() == before
    (tmp_path / "metrics/binned.py").write_text("3")
    assert record.sources() != before


def test_dvc_records_nothing_of_other_settings_than_its_stages_have(made):
    clone, _ = made
    command = (sys.executable, "-m", "pipeline.record", "suite=digits", "split=0")
    assert "DVC's stages know nothing of it" in shell(clone, *command, code=2)
    for other in ("benchmark=digits", "tuning=paper", "paths.precomputed=/y"):
        with pytest.raises(SelectionError, match="DVC's stages know nothing of it"):
            record.check_is_what_stages_do({"suite": "digits", "precomputed": ""}, [SUITE, other])
    parameters = {"suite": "digits", "precomputed": "/x"}
    with pytest.raises(SelectionError, match=r"params.yaml says paths.precomputed=/x; make repro"):
        record.check_is_what_stages_do(parameters, [SUITE])
    of_make = [SUITE, "paths.precomputed=/x"]
    record.check_is_what_stages_do(parameters, [*of_make, "jobs=2", "+sweep.gpu.partition=a"])


def test_what_make_is_asked_for_goes_before_the_parameters(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = asked_of_make({"SUITE": "cifar", "PRECOMPUTED": "my $(logits)"})
    assert asked == {"suite": "cifar", "precomputed": str(tmp_path / "my $(logits)")}
    assert asked_of_make({"SUITE": "", "PRECOMPUTED": ""}) == asked_of_make({}) == {}


@pytest.mark.parametrize("folder", [*NASTY, *ODD, ""])
def test_what_make_writes_into_the_parameters_is_read_back_and_comments_stay(tmp_path, folder):
    path = tmp_path / "params.yaml"
    text = (CONF.parent / "params.yaml").read_text()
    path.write_text(text)
    write_parameters(path, {"suite": "cifar", "precomputed": folder})
    assert read_parameters(path) == {"suite": "cifar", "precomputed": folder}
    changed = set(text.splitlines()) - set(path.read_text().splitlines())
    assert {line.partition(":")[0] for line in changed} <= {"suite", "precomputed"}
    before = path.read_bytes()
    write_parameters(path, {})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", ["", "- digits", "suite: [a", "suite: [a]", "precomputed: /x", "suite: 3"]
)
def test_parameters_that_are_not_whole_are_told_in_one_line(tmp_path, content):
    path = tmp_path / "params.yaml"
    path.write_text(content)
    with pytest.raises(SelectionError, match=r"params\.yaml: give `suite` and `precomputed`"):
        read_parameters(path)


def test_parameters_without_a_folder_have_none(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("suite: digits\n")
    assert read_parameters(path) == {"suite": "digits", "precomputed": ""}
