"""Compare texts that programs print: their words are equal, and their numbers are near."""

import re

import pytest

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
RELATIVE, ABSOLUTE = 0.005, 0.0011
"""How far a number may lie from the printed one: solvers end an ulp apart on other machines."""


def check_printed(printed: str, shown: str) -> None:
    """Words are equal, and numbers are near."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=RELATIVE, abs=ABSOLUTE), printed
