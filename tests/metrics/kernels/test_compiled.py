"""Compiled kernels never outlive the sources they were compiled from."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import torch

from metrics.kernels import compiled as module

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


def folder():
    """The folder of the kernels as they are now, made if it can be."""
    assert module._kept_in.__wrapped__() == module._folder()
    return module._folder()


def test_there_are_kernels_in_both_packages():
    assert {path.parts[0] for path in KERNELS} == set(PACKAGES)


@pytest.mark.parametrize("source", KERNELS, ids=str)
def test_an_edit_of_any_kernel_starts_an_empty_folder(source, copy_of_the_packages):
    before = folder()
    assert folder() == before
    path = copy_of_the_packages / source
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert folder() != before
    assert folder().parent == before.parent


def test_the_decorator_leaves_numbas_own_setting_as_it_was(monkeypatch):
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
    from metrics.kernels.ranks import descending_order

    descending_order(torch.tensor([[2.0, 1.0]], dtype=torch.float64))
    assert list(module._folder().rglob("ranks._pack*.nbi"))


TWO_KERNELS = """
from metrics.kernels.compiled import compiled

@compiled
def twice(x):
    return 2 * x

@compiled
def half(x):
    return x / 2

assert (twice(3), twice(3.0), half(3)) == (6, 6.0, 1.5)
"""


@pytest.fixture
def small_package(tmp_path):
    """A package that holds the decorator and two kernels: it loads without torch."""
    kernels = tmp_path / "metrics" / "kernels"
    kernels.mkdir(parents=True)
    (kernels.parent / "__init__.py").touch()
    shutil.copy(module.__file__, kernels / "compiled.py")
    (kernels / "two.py").write_text(TWO_KERNELS)
    return tmp_path


def said(folder, cache=None):
    """What a new process in a copy of the packages writes on stderr when it calls two kernels."""
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "metrics.kernels.two"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.slow
def test_kernels_work_where_no_folder_can_be_written(small_package):
    in_the_way = small_package / "metrics" / "__pycache__"  # a file: root may write anywhere
    in_the_way.write_text("")
    line = said(small_package)
    assert line.startswith("compiling kernels")
    assert f"{in_the_way}/kernels-" in line
    assert "cannot be written: set NUMBA_CACHE_DIR" in line
