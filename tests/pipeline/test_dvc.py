"""dvc.yaml as people use it: repro, push and pull."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from tests.pipeline.test_imports import OURS, imported, modules
from utility_calibration.pipeline.harness.parameters import CONF

ROOT = CONF.parent
MODULES_OF_SOURCES = {
    f"sources.{name}"
    for path in (CONF / "benchmark").glob("*.yaml")
    for name in re.findall(r"pipeline\.sources\.(\w+)\.", path.read_text(encoding="utf-8"))
    if name != "file"  # a person's file, which no suite of DVC has
}


def shell(folder, *command):
    # Compiling for another folder would take longer than to do without.
    fast = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    fast["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), fast["PATH"]])
    done = subprocess.run(
        command, cwd=folder, env=fast, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def dvc(folder, *arguments):
    return shell(folder, sys.executable, "-m", "dvc", *arguments)


def test_the_committed_parameters_are_what_the_configuration_composes_to():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config")
    committed = yaml.safe_load((ROOT / "params.yaml").read_text())
    there = yaml.safe_load(OmegaConf.to_yaml(composed, resolve=True))
    assert committed == {key: there[key] for key in committed}
    assert there.keys() - committed.keys() == {"benchmark", "calibrator", "each"}


def test_the_committed_lock_is_of_the_committed_parameters_alone():
    """Other suites have folders of one person in their stages; delete the file and repro again."""
    suite = yaml.safe_load((ROOT / "params.yaml").read_text())["suite"]
    stages = yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"]
    others = {stage.partition("@")[2] for stage in stages} - {"", *suite["benchmarks"]}
    assert others - {*suite["dynamics"], *suite["users"]} == set()


MAKERS = {
    "logits": [*MODULES_OF_SOURCES],
    "fit": ["scoring.fitted"],
    "evaluate": ["scoring.held_out", "scoring.across_splits"],
    "dynamics": ["scoring.dynamics_study"],
    "users": ["scoring.users_study"],
}
"""The modules of pipeline/ that make the files of a stage."""


@pytest.mark.parametrize("stage", MAKERS)
def test_a_stage_depends_on_every_file_of_the_pipeline_that_makes_its_files(stage):
    named = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"][stage]["do"]["deps"]
    behind: set[str] = set()
    waiting = [f"{OURS}pipeline.{name}" for name in MAKERS[stage]]
    while waiting:
        module = waiting.pop()
        if module not in behind and module.startswith(f"{OURS}pipeline."):
            behind.add(module)
            waiting += imported(module)
    files = {modules()[module].relative_to(ROOT) for module in behind}
    # The keys of units leave out pipeline/harness, too (pipeline/harness/code_digest.py).
    files = {file for file in files if "harness" not in file.parts}
    assert len(files) >= len(MAKERS[stage])
    assert [file for file in sorted(files) if not {file, *file.parents} & {*map(Path, named)}] == []


SMALL = [
    ("conf/splits/default.yaml", "count: 10", "count: 1"),
    ("conf/evaluation/default.yaml", "utilities: 1500", "utilities: 20"),
    ("conf/evaluation/default.yaml", "floor_repetitions: 400", "floor_repetitions: 4"),
    ("conf/evaluation/default.yaml", "bootstrap_repetitions: 200", "bootstrap_repetitions: 4"),
    ("conf/dynamics/default.yaml", "iterations: 50", "iterations: 1"),
    ("conf/dynamics/default.yaml", "utilities: 512", "utilities: 8"),
    ("conf/users/default.yaml", "utilities: 200", "utilities: 8"),
    *(("conf/suite/_base.yaml", f"    - {name}\n", "")
      for name in ("dirichlet", "isotonic", "vector", "patching", "logit_shift")),
    ("conf/suite/_base.yaml", "    - structured_matrix ", "# "),
]  # fmt: skip


@pytest.fixture
def project(tmp_path_factory):
    """A repository of this code, with two calibrators and one split, after an experiment."""
    folder = tmp_path_factory.mktemp("dvc") / "here"
    listed = shell(
        ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard",
        "calibrators", "conf", "metrics", "pipeline", "utility_calibration",
    )  # fmt: skip
    kept = [".dvc/.gitignore", ".dvc/config", ".dvcignore", ".gitignore", "dvc.yaml", "params.yaml"]
    for name in [*listed.splitlines(), *kept]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink() or (ROOT / name).is_file():
            shutil.copyfile(ROOT / name, folder / name, follow_symlinks=False)
    for name, old, new in SMALL:
        text = (folder / name).read_text()
        assert old in text, (name, old)
        (folder / name).write_text(text.replace(old, new))
    shell(folder, "git", "init", "-q")
    for key, value in (("user.name", "Nobody"), ("user.email", "nobody@localhost")):
        shell(folder, "git", "config", key, value)
    commit(folder, "code")
    dvc(folder, "exp", "run")  # composes params.yaml from the smaller configuration
    commit(folder, "run")
    return folder


def commit(folder, message):
    shell(folder, "git", "add", ".")
    shell(folder, "git", "commit", "-q", "-m", message)


@pytest.mark.slow
def test_what_was_run_and_pushed_is_up_to_date_here_and_in_a_clone(project, tmp_path):
    assert "Running stage" not in dvc(project, "repro")
    dvc(project, "remote", "add", "-d", "--local", "folder", str(tmp_path / "remote"))
    dvc(project, "push")
    clone = tmp_path / "another path" / "there"
    shell(tmp_path, "git", "clone", "-q", str(project), str(clone))
    assert "Running stage" not in dvc(clone, "repro", "--allow-missing")
    dvc(clone, "remote", "add", "-d", "--local", "folder", str(tmp_path / "remote"))
    dvc(clone, "pull")
    assert "up to date" in dvc(clone, "status")
    assert "Running stage" not in dvc(clone, "repro")
    by_hand = shell(clone, sys.executable, "-m", "utility_calibration", "evaluate", "suite=digits")
    assert "2 up to date" in by_hand
