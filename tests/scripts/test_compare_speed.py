"""compare_speed: all contenders give the same answer."""

from importlib.util import find_spec

import pytest

from utility_calibration.scripts.speed import __main__ as compare_speed
from utility_calibration.scripts.speed.cases import OURS, PEERS, Case, Size, data

TINY = Size(300, 6, utilities=9)
PEER = 5e-3
"""Other packages cut bins an ulp elsewhere, and some end their fits earlier."""


@pytest.mark.parametrize("case", compare_speed.CASES, ids=lambda case: case.title)
def test_every_contender_gives_the_reference_s_answer(case: Case) -> None:
    inputs, answers = data(TINY), {}
    assert OURS in case.contenders
    for name, run in case.contenders.items():
        if name in PEERS and find_spec(name) is None:
            continue
        answers[name] = case.answer(inputs, run(inputs))
        difference = case.difference(next(iter(answers.values())), answers[name])
        assert difference <= (PEER if name in PEERS else case.tolerance), name
