"""Whether the present probabilities can be trusted, and where they fail worst."""

import re

import pytest

from tests.pipeline.reporting.conftest import decided
from tests.pipeline.reporting.verdicts import (
    BEYOND,
    PLACE,
    TEMP,
    cell,
    verdict,
)
from utility_calibration.pipeline.reporting.answer import (
    DOUBT,
    NO,
    UNSCORED,
    UNSURE,
    YES,
    Answer,
    answer_of,
)
from utility_calibration.pipeline.reporting.verdict import (
    LIMITS,
    SIZES,
    verdict_of,
)
from utility_calibration.pipeline.reporting.worst import Worst
from utility_calibration.pipeline.scoring.decisions import INFINITE

PRESENT_CELLS = {
    YES: cell(0.01),
    NO: cell(0.01, **BEYOND),
    UNSURE: cell(0.01, within_noise=None),
}


@pytest.mark.parametrize("word", PRESENT_CELLS)
def test_the_answer_follows_the_signs_of_the_present_forecast(word):
    found = verdict({"u_cwe": {"uncalibrated": PRESENT_CELLS[word], TEMP: cell(0.02, **BEYOND)}})
    assert found.answer.word == word
    refused = verdict({"u_cwe": {"uncalibrated": PRESENT_CELLS[word]}}, refused="Too few points.")
    assert refused.answer.word == (NO if word == NO else UNSURE)


def test_a_forecast_that_excluded_what_happened_is_not_taken_at_face_value():
    columns = {"u_cwe": {"uncalibrated": cell(0.01)}}
    assert verdict(columns, marks={"uncalibrated": (INFINITE,)}).answer.word == NO


def test_without_the_present_forecast_nothing_is_said_of_it():
    assert verdict({"u_cwe": {TEMP: cell(0.01, True)}}).answer == Answer(UNSURE, DOUBT, UNSCORED)


def test_a_cost_that_was_foreseen_too_low_is_not_called_too_high():
    """The utility of losses is minus the loss, so less than predicted means more costly."""
    place = Worst(**{**PLACE, "name": "losses", "low": -0.9, "high": -0.1, "gap": -0.3}).as_cost()
    columns = {"u_losses": {"uncalibrated": cell(0.1, **BEYOND)}}
    answer = verdict_of(decided(columns), None, {"u_losses": {"uncalibrated": place}}).answer
    assert "0.10–0.90" in answer.place and "too low" in answer.place and not answer.example
    words = place.words("u_losses")
    assert ".10–.90" in words and ".30 higher" in words


@pytest.mark.parametrize("share", [0.34, 0.95, 1.0])
@pytest.mark.parametrize(
    ("key", "subject"), [("u_losses", "action"), ("u_dcg", "“discount exponent 2” (rankings)")]
)
def test_a_place_names_what_differs_and_from_what_however_large_it_is(key, subject, share):
    """Nearly everywhere no range is named."""
    place = Worst(**{**PLACE, "name": "discount exponent 2", "share": share})
    columns = {key: {"uncalibrated": cell(0.1, **BEYOND)}}
    text = answer_of(decided(columns), {key: {"uncalibrated": place}}).place
    assert subject in text and "than predicted" in text


def test_a_diagram_of_costs_is_that_of_utilities_turned_round():
    diagram = {
        "at": [-2.0, -1.0, 0.0],
        "curve": [-0.1, -0.3, 0.2],
        "low": [None, -0.2, -0.1],
        "high": [None, 0.4, 0.3],
        "bins": [[-2.0, -3.0, -2.5, -1.5], [-1.0, -0.5, None, None]],
        "density": [[-2.0, -1.0, 0.25], [-1.0, 0.0, 0.75]],
    }
    place = {**PLACE, "name": "losses", "diagram": diagram}
    assert Worst(**place).as_cost().diagram == {
        "at": [0.0, 1.0, 2.0],
        "curve": [-0.2, 0.3, 0.1],
        "low": [-0.3, -0.4, None],
        "high": [0.1, 0.2, None],
        "bins": [[1.0, 0.5, None, None], [2.0, 3.0, 1.5, 2.5]],
        "density": [[0.0, 1.0, 0.75], [1.0, 2.0, 0.25]],
    }


def test_a_bound_is_no_part_of_the_answer():
    """Beside what chance explains it looks like a contradiction; the page has it."""
    columns = {"u_cwe": {"uncalibrated": cell(0.01, True), TEMP: cell(0.01, True)}}
    found = verdict(columns, users={"uncalibrated": 0.041, TEMP: 0.052})
    first = " ".join([found.answer.sentence, found.answer.reason, found.headline, found.by_use])
    assert "4.1" not in first
    assert sum("4.1 per 100" in sentence for sentence in found.details[SIZES]) == 1


def test_a_mark_beside_a_yes_is_explained():
    columns = {
        "u_cwe": {"uncalibrated": cell(0.01, True)},
        "tce_bin": {"uncalibrated": cell(0.02, True, **BEYOND)},
    }
    found = verdict(columns)
    assert found.answer.word == YES
    assert sum("TCE_bin" in line and "†" in line for line in found.details[LIMITS]) == 1
    assert LIMITS not in verdict({"u_cwe": columns["u_cwe"]}).details


def test_a_place_whose_ends_are_near_each_other_has_two_different_ends():
    for key, name, ends in (
        ("u_dcg", "discount exponent 2", ".6102–.6139"),
        ("u_cwe", "class cat", "61.02 to 61.39 %"),
    ):
        place = Worst(**{**PLACE, "name": name, "low": 0.6102, "high": 0.6139})
        answer = answer_of(
            decided({key: {"uncalibrated": cell(0.1, **BEYOND)}}), {key: {"uncalibrated": place}}
        )
        assert ends in answer.place


def test_the_worst_place_is_a_probability_before_it_is_another_utility():
    keys = ("u_dcg", "u_topk", "u_cwe")
    columns = {key: {"uncalibrated": cell(0.1, beyond_floor=key != "u_cwe")} for key in keys}
    worst = {key: {"uncalibrated": Worst(**PLACE, name="class cat")} for key in keys}
    assert answer_of(decided(columns), worst).metric == "u_topk"
    only = {"u_dcg": columns["u_dcg"]}
    assert answer_of(decided(only), worst).metric == "u_dcg"


def test_a_bound_stands_beside_the_present_one_and_what_chance_explains():
    present = cell(0.1, **BEYOND, floor_q95=0.03)
    columns = {"u_cwe": {"uncalibrated": present, TEMP: cell(0.01, True, floor_q95=0.021)}}
    found = verdict(columns, users={"uncalibrated": 0.22, TEMP: 0.0702})
    present_line, taken_line, _ = found.details[SIZES]
    numbers = [re.findall(r"\d[\d.]*(?=[ .)])", line) for line in (present_line, taken_line)]
    assert numbers == [["22", "100", "10", "3.0"], ["7.1", "100", "1.0", "2.1"]]
    # The bound covers the uses, and not the sampled users, who have other payoffs.
    assert "single decisions" in taken_line
