"""The wheel: one top-level name, which works beside a user's modules of the same names as ours."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.test_environment import PROJECT, copied

BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
OPTIONAL = {"torchmetrics", "metric_cases", "calibrator_cases"}
"""Modules that import a package which the lock does not have."""
IMPORT_ALL = """
import sys
from importlib import import_module
from pathlib import Path
import utility_calibration
package = Path(utility_calibration.__file__).parent
for path in sorted(package.rglob("*.py")):
    parts = path.relative_to(package.parent).with_suffix("").parts
    if path.stem not in sys.argv[1].split():
        import_module(".".join(parts[:-1] if path.stem == "__init__" else parts))
print("imported")
"""


def built(kind: str, project: Path, folder: Path) -> Path:
    """Build a `wheel` or an `sdist` of a project into a folder."""
    program = [sys.executable, "-c", BUILD.format(kind), str(folder)]
    subprocess.run(program, cwd=project, check=True, capture_output=True)
    return next(folder.iterdir())


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("project") / "copy")


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", project, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a person's own modules; the wheel is installed in its folder `site`."""
    place = tmp_path_factory.mktemp("place")
    install = ["install", "--no-deps", "--no-index", "--no-compile", "--quiet", "--target"]
    program = [sys.executable, "-m", "pip", "--disable-pip-version-check", *install]
    subprocess.run([*program, place / "site", wheel], check=True)
    for name in ("metrics", "calibrators", "pipeline", "scripts"):
        (place / f"{name}.py").write_text(f"raise RuntimeError('a person's own {name}')")
    return place


def ran(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the wheel is installed. Kernels are not compiled, to spare a minute."""
    own = {"PYTHONPATH": str(place / "site"), "NUMBA_DISABLE_JIT": "1", "HYDRA_FULL_ERROR": "0"}
    environment = os.environ | own
    program = [sys.executable, *arguments]
    return subprocess.run(program, cwd=place, env=environment, capture_output=True, text=True)


def test_the_wheel_has_one_name_and_the_sdist_gives_the_same_wheel(project, wheel, tmp_path):
    names = {name.partition("/")[0] for name in content(wheel)}
    assert {name for name in names if ".dist-info" not in name} == {"utility_calibration"}
    for file in ("py.typed", "conf/config.yaml", "pipeline/reporting/templates/page.js"):
        assert f"utility_calibration/{file}" in content(wheel)
    with tarfile.open(built("sdist", project, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / f"utility_calibration-{PROJECT['version']}"
    assert content(built("wheel", unpacked, tmp_path / "wheel")) == content(wheel)
    assert content(built("wheel", project, tmp_path / "again")) == content(wheel)


def test_every_module_is_imported_beside_a_persons_own(place: Path) -> None:
    done = ran(place, "-c", IMPORT_ALL, " ".join(OPTIONAL))
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.slow
def test_the_command_scores_applies_and_fits_beside_a_persons_own_modules(place: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    logits = 2 * np.eye(3)[labels] + rng.normal(size=(120, 3))
    np.savez(place / "my.npz", logits=logits, labels=labels)
    quick = ["--quick", "--splits", "2", "--save", "saved.npz"]
    for arguments in (
        ["score", "my.npz", "--output", "out", "--method", "temperature", *quick],
        ["apply", "saved.npz", "my.npz", "--output", "calibrated.csv"],
        ["logits", "benchmark=digits"],
        ["fit", "benchmark=digits", "calibrator=temperature", "split=0"],
        ["status", "benchmark=digits", "calibrator=temperature", "split=0"],
    ):
        done = ran(place, "-m", "utility_calibration", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "missing: 1 " in done.stdout
    for file in ("out/report.html", "calibrated.csv", "data/fits/digits/temperature/0.npz"):
        assert (place / file).is_file()
