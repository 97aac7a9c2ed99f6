"""compare_speed: all contenders give the same answer."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from scripts import compare_speed
from scripts.speed.cases import OURS, Case, Size, data

TINY = Size(300, 6, utilities=9)


@pytest.mark.parametrize("case", compare_speed.CASES, ids=lambda case: case.key)
def test_every_contender_gives_the_reference_s_answer(case: Case) -> None:
    inputs, answers = data(TINY, "cpu"), {}
    assert OURS in case.contenders
    for name, run in case.contenders.items():
        is_peer = name in compare_speed.PEERS
        if is_peer and find_spec(name) is None:
            continue
        answers[name] = case.answer(inputs, run(inputs))
        difference = case.difference(next(iter(answers.values())), answers[name])
        assert difference <= (case.peer_tolerance if is_peer else case.tolerance), name
