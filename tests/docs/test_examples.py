"""The examples in docstrings of public functions and classes."""

import doctest

import pytest

from utility_calibration import calibrators, metrics

PUBLIC = {name: getattr(room, name) for room in (metrics, calibrators) for name in room.__all__}
HELD = {
    test.name: test
    for name, public in PUBLIC.items()
    for test in doctest.DocTestFinder().find(public, name, globs=PUBLIC)
    if test.examples
}
WITHOUT = {"METRICS", "PriorEstimate", "RecalibrationGain"}
"""What is no function, and what functions return."""


def test_every_public_name_has_an_example() -> None:
    assert PUBLIC.keys() - HELD.keys() == WITHOUT


@pytest.mark.parametrize("name", HELD)
def test_example(name: str) -> None:
    assert doctest.DocTestRunner().run(HELD[name]).failed == 0
