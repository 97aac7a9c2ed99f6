"""Compiled kernels never outlive the sources they were compiled from."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from utility_calibration.metrics.kernels import compiled as module

ROOT = Path(module.__file__).parents[2]
PACKAGES = ("metrics", "calibrators")
KERNELS = sorted(
    path.relative_to(ROOT)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if re.search(r"^@compiled", path.read_text(encoding="utf-8"), re.MULTILINE)
)


@pytest.fixture
def copy_of_the_packages(tmp_path, monkeypatch):
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path


folder = module._folder.__wrapped__


@pytest.mark.parametrize("source", KERNELS, ids=str)
def test_an_edit_of_any_kernel_starts_an_empty_folder(source, copy_of_the_packages):
    assert {path.parts[0] for path in KERNELS} == set(PACKAGES)
    before = folder()
    assert folder() == before
    path = copy_of_the_packages / source
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert folder() != before
    assert folder().parent == before.parent


def test_the_decorator_leaves_numbas_own_setting_as_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "somewhere")

    @module.compiled
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result

    assert numba.config.CACHE_DIR == "somewhere"
    assert total(np.array([1.0, 2.0])) == 3


def test_kernels_are_kept_in_the_named_folder():
    from utility_calibration.metrics.kernels.ranks import descending_order

    descending_order(np.array([[2.0, 1.0]]))
    assert list(folder().rglob("ranks._pack*.nbi"))


def test_kept_code_is_read_without_the_compilers_imports():
    program = """
import sys
import numpy as np
from utility_calibration.metrics.kernels.ranks import descending_order
descending_order(np.array([[2.0, 1.0]]))
sys.exit("numba.np.arraymath" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT)  # compiles, if nobody has
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


def double(x):
    return 2 * x


def test_damaged_code_is_compiled_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)
    assert module.compiled(double)(3) == 6
    for kept in tmp_path.rglob("*.nbc"):
        kept.write_bytes(b"damaged")
    for told in (1, 0):  # once: then it is kept again
        assert module.compiled(double)(3) == 6
        assert capsys.readouterr().err.count("is damaged") == told


def test_kernels_work_where_no_folder_can_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "__pycache__").write_text("")  # a file: root may write anywhere
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert folder() is None
    printed = capsys.readouterr().err
    assert printed.startswith("compiling kernels") and printed.count("\n") == 1
    monkeypatch.setattr(module, "_folder", lambda: None)
    assert module.compiled(lambda x: 2 * x)(3) == 6
