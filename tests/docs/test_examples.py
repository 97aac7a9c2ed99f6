"""The docstrings of public names: their examples, and whether they say shapes and errors."""

import doctest
import inspect
import re

import pytest

from utility_calibration import calibrators, metrics
from utility_calibration.metrics import plots

ROOMS = (metrics, plots, calibrators)
PUBLIC = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
EXAMPLES = {
    test.name: test
    for name, public in PUBLIC.items()
    for test in doctest.DocTestFinder().find(public, name, globs=PUBLIC)
    if test.examples
}
RECORDS = {"PriorEstimate", "RecalibrationGain"}
"""What functions return."""
FUNCTIONS = sorted(PUBLIC.keys() - RECORDS - {"METRICS"})


def test_every_public_name_has_an_example() -> None:
    assert PUBLIC.keys() - EXAMPLES.keys() == RECORDS | {"METRICS"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    assert doctest.DocTestRunner().run(EXAMPLES[name]).failed == 0


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if hasattr(metrics, name)])
def test_a_docstring_says_shapes_errors_and_the_source(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    if name == "TopClass":  # it has no arguments
        return
    assert re.search(r"\bInputError\b|same errors", text), "what is refused"
    if name in {"InputError", "register", "calibration_scorer", "Scorecard"}:  # no arrays
        return
    assert re.search(r"\[(n|m|C)\b", text), "the shape of an argument"
    assert re.search(r"eq\. |Example |section |sec\. |app\. |\b(19|20)\d\d\b", text), "the source"
