"""The digest of the code behind a target: which edits count."""

import itertools
import sys

import pytest

from tests.refusals import fails
from utility_calibration.pipeline.harness import code_digest as code
from utility_calibration.pipeline.harness.code_digest import UnknownTarget, code_digest, targets_in

FILES = {
    "__init__.py": "from {name}.maker import Maker as Given\n",
    "maker.py": "import math\n\nfrom .parts.deep import depth\n\n\nclass Maker:\n    top = depth\n",
    "parts/__init__.py": "",
    "parts/deep.py": "def depth():\n    from {name}.late import late\n\n    return late\n",
    "late.py": "late = 1\n",
    "beside.py": "aside = 1\n",
}
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """A folder of a test's own for what was read of files."""
    monkeypatch.setattr(code, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A user's own package that nobody has imported, and its name."""
    name = f"own_{next(NUMBERS)}"
    for path, text in FILES.items():
        (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name / path).write_text(text.replace("{name}", name))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / name, name


def digest(target):
    """The digest as the next program computes it."""
    cached = code.code_digest, code._module_of, code._read, code._passed_on, code._file
    for function in cached:
        function.cache_clear()
    return code_digest(target)


@pytest.mark.parametrize(
    ("file", "added", "counts"),
    [
        ("parts/deep.py", "x = 1\n", True),
        ("late.py", "x = 1\n", True),
        ("beside.py", "x = 1\n", False),
    ],
)
def test_an_edit_counts_where_the_target_imports_the_file(package, file, added, counts):
    folder, name = package
    before = digest(f"{name}.Given")
    with (folder / file).open("a") as edited:
        edited.write(added)
    assert (digest(f"{name}.Given") != before) is counts


def test_what_was_read_of_a_file_is_kept_and_never_trusted_once_it_is_damaged(package, kept):
    first = digest(f"{package[1]}.Given")
    (read,) = kept.glob("*.maker.py.txt")
    content = read.read_text()
    read.write_text(content.replace("Maker", "Baker"))
    assert digest(f"{package[1]}.Given") == first
    assert read.read_text() == content


def test_docstrings_comments_and_line_breaks_do_not_count(package):
    folder, name = package
    before = digest(f"{name}.Given")
    (folder / "maker.py").write_text(
        '"""A module."""\nimport math  # a comment\nfrom .parts.deep import depth\n'
        'class Maker:\n    """A class."""\n    top = depth\n'
    )
    assert digest(f"{name}.Given") == before


def test_a_users_module_reaches_this_repository_and_nothing_is_imported(tmp_path, monkeypatch):
    path = tmp_path / "own_calibrator.py"
    path.write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    alone = digest("own_calibrator.Mine")
    path.write_text("from utility_calibration.calibrators import VectorScaling\nraise SystemExit\n")
    assert digest("own_calibrator.Mine") != alone
    assert "own_calibrator" not in sys.modules


def test_targets_of_a_configuration_are_found_however_deep():
    settings = {"_target_": "a.B", "own": {"u": [{"_target_": "c.D", "of": {"_target_": "e.F"}}]}}
    assert list(targets_in(settings)) == ["a.B", "c.D", "e.F"]


def test_a_calibrator_has_the_digest_of_its_own_files():
    """Else a change of one method would make the fits of all others anew."""
    names = ("TemperatureScaling", "VectorScaling", "DirichletCalibration", "IsotonicCalibration")
    fitted, package = (
        "utility_calibration.pipeline.scoring.fitted",
        "utility_calibration.calibrators",
    )
    fits = {code_digest(fitted, f"{package}.{name}") for name in names}
    assert len(fits) == len(names)


def test_a_package_that_is_not_there_is_told_with_what_installs_it():
    with fails(UnknownTarget, "no_such_package", "pip install", "requirements-peers.txt"):
        code_digest("no_such_package.parts.Maker")
