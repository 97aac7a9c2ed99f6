"""What is installed: ranges in pyproject.toml; pins in the lock and environment.yml, in step."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import utility_calibration

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "scikit-optimize": "skopt",
    "hydra-core": "hydra",
    "pyyaml": "yaml",
    "lazy-loader": "lazy_loader",
    "venn-abers": "venn_abers",
    "cir-model": "cir_model",
}
"""Distributions whose package has another name."""
BY_OTHERS = {"markupsafe", "llvmlite"}
"""Packages that a declared one brings: jinja2, numba."""
FOLDERS = ("metrics", "calibrators", "pipeline", "scripts", "utility_calibration")
SCORE_AN_ARRAY = """
import sys
import numpy as np
from utility_calibration.calibrators import TemperatureScaling, UtilityPatching
from utility_calibration.metrics import TopK, scorecard
rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 300)
logits = 3 * np.eye(3)[labels] + 3 * rng.normal(size=(300, 3))
for method in (TemperatureScaling(), UtilityPatching(step_size=1.0, steps=5, sampled=False)):
    probabilities = method.fit(logits, labels).predict_proba(logits)
    assert TopK().calibration_errors(probabilities, labels).shape == (3,)
assert 0 < scorecard(probabilities, labels).metrics["u_cwe"] < 1
assert not {"torch", "pyarrow", "matplotlib", "hydra"} & sys.modules.keys()
print("scored")
"""


def copied(project: Path) -> Path:
    """Copy what is installed, because building leaves folders in the project's."""
    for name in (*FOLDERS, "conf"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    return project


def pins(lines: list[str]) -> dict[str, str]:
    pinned = [line.removesuffix(" \\") for line in lines if line and line[0] not in " #-"]
    pairs = [line.split("==") for line in pinned]
    return {canonicalize_name(name): version for name, version in pairs}


def lock() -> dict[str, str]:
    return pins((ROOT / "requirements.lock").read_text().splitlines())


def requirements(extra: str) -> list[Requirement]:
    """What an installation with this extra asks for; an extra may name others of the project."""
    optional = PROJECT["optional-dependencies"]
    asked = [Requirement(line) for line in [*PROJECT["dependencies"], *optional[extra]]]
    others = {name for line in asked if line.name == PROJECT["name"] for name in line.extras}
    outside = [line for line in asked if line.name != PROJECT["name"]]
    return [*outside, *(line for other in sorted(others) for line in requirements(other))]


def test_every_package_that_the_code_imports_is_declared() -> None:
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    known = {IMPORTED_AS.get(name, name) for name in declared} | sys.stdlib_module_names | BY_OTHERS
    imported: dict[str, str] = {}
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            imported |= {name.partition(".")[0]: str(path) for name in names}
    assert {k: v for k, v in imported.items() if k not in known and k not in FOLDERS} == {}


def test_the_lock_meets_every_declared_range() -> None:
    locked = lock()
    for requirement in requirements("all"):
        version = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_environment_yml_pins_what_the_extra_all_asks_for_as_the_lock_does() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert "-e ." in pip  # the project itself, so that its command is there
    names = {canonicalize_name(requirement.name) for requirement in requirements("all")}
    assert pins(pip) == {name: lock()[name] for name in names}


def test_no_pin_carries_a_local_label_a_path_or_an_address() -> None:
    for file in (
        "requirements.lock",
        "requirements-cuda.lock",
        "pyproject.toml",
        "environment.yml",
    ):
        text = re.sub(r"\[project.urls\].*?\n\n", "", (ROOT / file).read_text(), flags=re.DOTALL)
        assert not re.search(r"==[^\"\s]*\+|file:|://|--index|--find-links", text), file


def test_every_package_of_the_lock_has_hashes_and_all_that_install_it_ask_for_them() -> None:
    hashed = re.compile(r"\S+==\S+( ; .*?)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n")
    for file in ("requirements.lock", "requirements-cuda.lock"):
        packages = re.split(r"^(?=\S)", (ROOT / file).read_text(), flags=re.MULTILINE)[1:]
        assert [text for text in packages if not hashed.fullmatch(text)] == []
    uses_lock = re.compile(r"(-r|-c|--constraint) *requirements(-cuda)?\.lock")
    for file in ("Makefile", "Dockerfile"):
        commands = (ROOT / file).read_text().replace("\\\n", " ").splitlines()
        installing = [line for line in commands if uses_lock.search(line)]
        assert installing and all("--require-hashes" in line for line in installing), file


def test_containers_hooks_and_hosted_tests_take_the_versions_and_commands_of_the_project() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python = next(line for line in environment["dependencies"] if str(line).startswith("python="))
    docker = (ROOT / "Dockerfile").read_text()
    image = rf"^FROM python:{python.removeprefix('python=')}-slim@sha256:[0-9a-f]{{64}}$"
    assert re.search(image, docker, re.MULTILINE)
    assert "-r requirements.lock" in docker and "==" not in docker
    (hooks,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert hooks["rev"] == f"v{lock()['ruff']}"
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    actions = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert [name for name in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands[0] == ".ci/run" and (ROOT / ".ci/run").exists()
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    ends = jobs["ranges"]["strategy"]["matrix"]["end"]
    assert {f"test-{end}" for end in ends} <= set(targets[1].split())


@pytest.mark.slow
def test_a_plain_installation_scores_an_array_in_an_empty_environment(tmp_path: Path) -> None:
    python, project = tmp_path / "environment" / "bin" / "python", copied(tmp_path / "project")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # With its hashes, pip would refuse a folder, which has none.
    versions = tmp_path / "versions.txt"
    versions.write_text("".join(f"{name}=={version}\n" for name, version in lock().items()))
    done = subprocess.run(
        [*install, "--no-compile", "--constraint", versions, project],
        capture_output=True,
        text=True,
    )
    if done.returncode and re.search("No matching distribution|Connection|resolve", done.stderr):
        pytest.skip(f"pip can install nothing here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    scored = subprocess.run(
        [python, "-c", SCORE_AN_ARRAY], cwd=tmp_path, capture_output=True, text=True
    )
    assert scored.stdout.strip() == "scored", scored.stderr


def test_the_version_is_that_of_the_newest_changes_and_of_the_citation() -> None:
    newest = re.search(r"^## (\S+) \(", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == PROJECT["version"] == utility_calibration.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == PROJECT["version"]


@pytest.mark.parametrize(
    ("suite", "code", "is_known"),
    [
        ("digits", None, True),
        ("mine", None, False),
        ("mine", 0, True),
        ("mine", 2, False),
        ("mine", 1, True),  # the packages are older than the lock: the set-up mends it
    ],
)
def test_an_unknown_suite_ends_make_before_the_set_up(tmp_path, suite, code, is_known):
    """Without an environment by the files of conf/suite, else by what the program says."""
    if code is not None:
        program = tmp_path / "bin" / "python"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
        (tmp_path / ".installed").touch()
    command = ["make", "-C", str(ROOT), "known-suite", f"SUITE={suite}", f"VENV={tmp_path}"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode == 0) == is_known, done.stderr
