"""compare_speed: all contenders agree, and a wrong answer fails the run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from scripts import compare_speed
from scripts.speed.case import OURS, Case, Size, data

TINY = Size(300, 6, utilities=9)


@pytest.mark.parametrize("case", compare_speed.CASES, ids=lambda case: case.key)
def test_every_contender_gives_the_reference_s_answer(case: Case) -> None:
    inputs, answers = data(TINY, "cpu"), {}
    assert OURS in case.contenders
    for name, run in case.contenders.items():
        is_peer = name in compare_speed.PEERS
        if is_peer and find_spec(name) is None:
            continue
        prepared = case.prepare(inputs)
        answers[name] = case.answer(prepared, run(prepared))
        difference = case.difference(next(iter(answers.values())), answers[name])
        assert difference <= (case.peer_tolerance if is_peer else case.tolerance), name


@pytest.mark.parametrize(
    ("ours", "code", "says"),
    [
        (lambda inputs: 1.0, 0, "0.0e+00"),
        (lambda inputs: 1.1, 1, "DISAGREES"),
    ],
)
def test_the_table_and_the_exit_code_tell_of_a_wrong_answer(
    ours: object, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("one", "One", {"plain": lambda inputs: 1.0, OURS: ours}, [TINY])  # type: ignore[dict-item]
    monkeypatch.setattr(compare_speed, "CASES", (case,))
    monkeypatch.setattr(compare_speed, "MIN_SECONDS", 0.001)
    assert compare_speed.main(["--output", str(tmp_path)]) == code
    rows = pd.read_csv(tmp_path / "speed_cpu.csv")
    assert list(rows.contender) == ["plain", "ours"]
    assert says in (tmp_path / "speed_cpu.md").read_text()
