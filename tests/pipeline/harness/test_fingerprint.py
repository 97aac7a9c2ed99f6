"""A fingerprint follows the code that is used, and nothing else."""

import pytest

from pipeline.harness import fingerprint
from pipeline.harness.fingerprint import (
    UnknownTarget,
    reached_names,
    source_fingerprint,
    targets_in,
)

FILES = {
    "__init__.py": '"""Names."""\nfrom house.method import Method\nfrom house.other import Other\n',
    "base.py": "class Base:\n    pass\n",
    "method.py": (
        '"""About."""\nimport numpy as np\nfrom house import helper\nfrom house.base import Base\n'
        "from house.one import one, two\n\n"
        "class Method(Base):\n    def fit(self):\n        from .late import late\n"
        "        return late(helper.SIZE) + np.sum(one(1))\n"
    ),
    "helper.py": "SIZE = 3\n",
    "late.py": "def late(x: int) -> int:\n    return x\n",
    "one.py": "def one(x):\n    return _inner(x)\n\ndef _inner(x):\n    return x + 1\n\n"
    "def two(x):\n    return x + 2\n",
    "other.py": "class Other:\n    value = 1\n",
}


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A package `house` of our own rules on the path; calling the fixture edits a file."""
    folder = tmp_path / "house"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(fingerprint, "PACKAGES", ("house",))

    def write(name, text):
        (folder / name).write_text(text)
        for cached in (
            fingerprint._find,
            fingerprint._module,
            fingerprint._used,
            source_fingerprint,
        ):
            cached.cache_clear()

    for name, text in FILES.items():
        write(name, text)
    return write


def replaced(house, name, old, new):
    assert old in FILES[name]
    house(name, FILES[name].replace(old, new))


def test_covers_what_is_named_through_packages_functions_and_dots(house):
    expected = ["base.Base", "helper.SIZE", "late.late", "method.Method", "one._inner", "one.one"]
    for target in ("house.Method", "house.method.Method", "house.Method.fit"):
        assert sorted(reached_names(target)) == [f"house.{name}" for name in expected]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("method.py", "one(1)", "one(2)"),
        ("method.py", "one(1)", "two(1)"),
        ("method.py", "import one, two", "import two as one, one as two"),
        ("method.py", "import numpy as np", "import math as np"),
        ("base.py", "pass", "size = 1"),
        ("helper.py", "3", "4"),
        ("helper.py", "SIZE = 3", "SIZE = 3\nEXTRA = 4"),  # imported as a module: all of it
        ("late.py", "return x", "return -x"),
        ("one.py", "x + 1", "1 + x"),
        ("one.py", "x + 1\n", "x + 1\n\none.size = 3\n"),
        ("one.py", "x + 1\n", "x + 1\n\nprint(one)\n"),
    ],
)
def test_changes_with_every_definition_that_is_reached(house, name, old, new):
    before = source_fingerprint("house.Method")
    replaced(house, name, old, new)
    assert source_fingerprint("house.Method") != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("__init__.py", "from house.other import Other", "__all__ = ['Method']"),
        ("other.py", "1", "2"),
        ("one.py", "x + 2", "x + 3"),
        ("one.py", "def two", "EXTRA = 5\n\ndef two"),
        ("one.py", "def two", "if __name__ == '__main__':\n    two(1)\n\ndef two"),
        ("late.py", "def late(x: int) -> int:", 'def late(x):  # why\n    """More."""\n'),
        ("method.py", '"""About."""', "from __future__ import annotations"),
    ],
)
def test_ignores_comments_types_layout_and_what_is_not_reached(house, name, old, new):
    before = source_fingerprint("house.Method")
    replaced(house, name, old, new)
    assert source_fingerprint("house.Method") == before


def test_moving_a_definition_to_another_file_changes_nothing(house):
    before = source_fingerprint("house.Method")
    house("inner.py", "def _inner(x):\n    return x + 1\n")
    replaced(house, "one.py", "def _inner(x):\n    return x + 1", "from house.inner import _inner")
    assert "house.inner._inner" in reached_names("house.Method")
    assert source_fingerprint("house.Method") == before


def test_two_definitions_that_change_places_are_told_apart(house):
    house("one.py", "def one(x):\n    return f(x) - g(x)\n\nf = abs\ng = round\n")
    before = source_fingerprint("house.one.one")
    house("one.py", "def one(x):\n    return f(x) - g(x)\n\nf = round\ng = abs\n")
    assert source_fingerprint("house.one.one") != before


def test_a_package_may_define_names_itself(house):
    house("__init__.py", "def build():\n    return 1\n\n\nLIMIT = 3\n")
    assert reached_names("house.build") == {"house.build"}
    assert reached_names("house.LIMIT") == {"house.LIMIT"}


def test_importing_the_package_counts_as_all_of_it(house):
    house("helper.py", "import house\nSIZE = house\n")
    assert "house.other.Other" in reached_names("house.Method")


def test_of_a_users_own_package_whole_modules_count(house, monkeypatch):
    monkeypatch.setattr(fingerprint, "PACKAGES", ("pipeline",))
    house("late.py", "from house.other import *\n" + FILES["late.py"])
    reached = reached_names("house.Method")
    assert {"house.one.two", "house.other.Other"} <= reached


@pytest.mark.parametrize("target", ["house.Nothing", "house.missing.Thing", "nowhere.Thing", "x"])
def test_unknown_targets_are_named(house, target):
    with pytest.raises(UnknownTarget, match=target.split(".")[0]):
        source_fingerprint(target)


def test_targets_nested_in_a_configuration_are_found():
    settings = {"_target_": "a.B", "utilities": [{"_target_": "c.D", "payoffs": [[1.0]]}], "k": 1}
    assert list(targets_in(settings)) == ["a.B", "c.D"]


def test_metrics_that_a_calibrator_does_not_use_leave_its_fits_alone():
    used = reached_names("calibrators.TemperatureScaling")
    modules = {name.rpartition(".")[0] for name in used}
    assert "calibrators.temperature.TemperatureScaling" in used
    assert "metrics.binned" not in modules
    assert "metrics.validation" not in modules  # its checks change no number
    assert "metrics.scorecard" not in modules
    assert "metrics.binned" in {
        name.rpartition(".")[0] for name in reached_names("metrics.scorecard.scorecard")
    }
