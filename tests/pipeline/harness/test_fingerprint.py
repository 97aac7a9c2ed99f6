"""A fingerprint follows the code that is used, and nothing else."""

import pytest

from pipeline.harness import fingerprint
from pipeline.harness.fingerprint import UnknownTarget, imported_modules, source_fingerprint

FILES = {
    "__init__.py": '"""Names."""\nfrom house.method import Method\nfrom house.other import Other\n',
    "base.py": "class Base:\n    pass\n",
    "method.py": (
        '"""About."""\nfrom house import helper\nfrom house.base import Base\n\n'
        "class Method(Base):\n    def fit(self):\n        from .late import late\n"
        "        return late(helper.SIZE)\n"
    ),
    "helper.py": "SIZE = 3\n",
    "late.py": "def late(x):\n    return x\n",
    "other.py": "class Other:\n    value = 1\n",
}


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A package `house` on the path; calling the fixture edits a file."""
    folder = tmp_path / "house"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (folder / name).write_text(text)
        for cached in (fingerprint._find, fingerprint._tree, fingerprint._digest):
            cached.cache_clear()

    for name, text in FILES.items():
        write(name, text)
    return write


def test_covers_imports_through_packages_functions_and_dots(house):
    expected = ["house.base", "house.helper", "house.late", "house.method"]
    assert imported_modules("house.Method") == expected
    assert imported_modules("house.method.Method") == expected
    assert imported_modules("house.method") == expected


@pytest.mark.parametrize("name", ["method.py", "base.py", "helper.py", "late.py"])
def test_changes_with_any_used_module(house, name):
    before = source_fingerprint("house.Method")
    house(name, FILES[name] + "\nEXTRA = 1\n")
    assert source_fingerprint("house.Method") != before


def test_ignores_comments_docstrings_layout_and_unused_modules(house):
    before = source_fingerprint("house.Method")
    house("other.py", "class Other:\n    value = 2\n")
    house("__init__.py", FILES["__init__.py"] + "__all__ = ['Method', 'Other']\n")
    house("late.py", '"""Doc."""\n\n\ndef late(x):  # why\n    """More."""\n\n    return (x)\n')
    assert source_fingerprint("house.Method") == before


def test_a_package_may_define_names_itself(house):
    house("__init__.py", "def build():\n    return 1\n\n\nLIMIT = 3\n")
    assert imported_modules("house.build") == imported_modules("house.LIMIT") == ["house"]


def test_importing_the_package_counts_as_all_of_it(house):
    house("helper.py", "import house\nSIZE = 3\n")
    assert "house.other" in imported_modules("house.Method")


@pytest.mark.parametrize("target", ["house.Nothing", "house.missing.Thing", "nowhere.Thing", "x"])
def test_unknown_targets_are_named(house, target):
    with pytest.raises(UnknownTarget, match=target.split(".")[0]):
        source_fingerprint(target)


def test_metrics_that_a_calibrator_does_not_use_leave_its_fits_alone():
    used = imported_modules("calibrators.TemperatureScaling")
    assert "calibrators.temperature" in used
    assert "metrics.binned" not in used
    assert "metrics.validation" not in used  # its checks change no number
    assert "metrics.scorecard" not in used
    assert "metrics.binned" in imported_modules("metrics.scorecard")
