"""The examples in docstrings of public functions and classes."""

import doctest

import pytest

from utility_calibration import calibrators, metrics

PUBLIC = {name: getattr(room, name) for room in (metrics, calibrators) for name in room.__all__}
HELD = {
    name: test
    for name, public in PUBLIC.items()
    for test in doctest.DocTestFinder(recurse=False).find(public, name, globs=PUBLIC)
    if test.examples
}


def test_at_least_five_public_names_have_an_example() -> None:
    assert len(HELD) >= 5


@pytest.mark.parametrize("name", HELD)
def test_example(name: str) -> None:
    assert doctest.DocTestRunner().run(HELD[name]).failed == 0
