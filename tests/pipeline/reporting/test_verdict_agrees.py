"""No sentence of a verdict contradicts its grid, its table or another sentence (500 made up)."""

import math
import re

import numpy as np
import pytest

from tests.pipeline.reporting.conftest import decided
from tests.pipeline.reporting.verdicts import costs_of
from utility_calibration.pipeline.reporting.answer import NO, UNSURE, YES
from utility_calibration.pipeline.reporting.names import method_name
from utility_calibration.pipeline.reporting.signs import SIGNS
from utility_calibration.pipeline.reporting.tables import ResultTable, TableSpec
from utility_calibration.pipeline.reporting.verdict import verdict_of
from utility_calibration.pipeline.reporting.wording import COUNTS
from utility_calibration.pipeline.scoring.choice import PRESENT, Unranked, choice_of
from utility_calibration.pipeline.scoring.decisions import HARMED, INFINITE
from utility_calibration.pipeline.scoring.recommended import DEFAULT, DEFAULTED, LOWEST, UNTOUCHED
from utility_calibration.pipeline.scoring.use_columns import (
    BEYOND,
    CHEAP,
    RANKS,
    WITHIN,
    WORSE,
)
from utility_calibration.pipeline.scoring.uses import COST

METHODS = ("uncalibrated", "temperature", "vector", "isotonic", "dirichlet", "sms", DEFAULT)
USES = ("u_cwe", "u_topk", "u_dcg")


def made_up(seed):
    """Decisions on two to seven methods, and in a quarter of the cases costs of decisions."""
    random = np.random.default_rng(seed)
    methods = [m for m in METHODS if random.random() < 0.7] or [*METHODS[:2]]
    infinite = {m for m in methods if random.random() < 0.2}
    columns = {}
    for key in (key for key in USES if random.random() < 0.8):
        losses = random.random() * random.random(len(methods))
        found, alike = random.random() < 0.7, random.random() < 0.5
        of_all = random.random() < 0.5  # one sign for all methods that no test finds worse
        columns[key] = {
            method: {
                "mean": mean,
                "floor_mean": 0.2 * random.random(),
                "floor_q95": 0.3,
                "difference": mean - losses.min(),
                "difference_half_width": random.choice([0.02, 0.2]),
                "not_worse": bool(mean == losses.min() or not found or random.random() < 0.8),
                "beyond_floor": beyond,
                "within_noise": within_noise(beyond, is_blind=random.random() < 0.05),
            }
            for method, mean in zip(methods, losses, strict=True)
            for beyond in [of_all if alike else random.choice([True, False, False, None])]
        }
    columns["nll"] = {
        m: {"mean": math.inf if m in infinite else round(random.random(), 2), "not_worse": True}
        for m in methods
    }
    harmed = {m for m in methods if random.random() < 0.1}
    marks = {m: (INFINITE,) * (m in infinite) + (HARMED,) * (m in harmed) for m in methods}
    decisions = decided(columns, marks=marks, test=random.choice(["corrected", "bootstrap"]))
    half = random.choice([0.05, 0.3])
    costs = costs_of(half, **{m: random.random() for m in methods})
    return decisions, costs if random.random() < 0.25 else None


def within_noise(beyond, is_blind):
    """As in Decision: of an error that is not beyond chance it may be unknown, too."""
    if beyond is None or (is_blind and not beyond):
        return None
    return not beyond


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_nothing_in_a_verdict_contradicts_another_part(start):
    for seed in range(start, start + 100):
        decisions, costs = made_up(seed)
        choice = choice_of(decisions, costs and costs["methods"])
        check_names(decisions, choice)
        check_pick(decisions, choice)
        check_words(decisions, choice, verdict_of(decisions, costs))


def check_names(decisions, choice):
    """No method is named that the grid marks with ✗ or ∞."""
    infinite = decisions.marked(INFINITE)
    for use in choice.uses:
        assert all(use.signs[m] != WORSE and m not in infinite for m in use.named)
        assert (use.take in use.named) if use.named else not use.take
        assert not use.named or (use.differs and use.has_power and not choice.why_unranked)


def check_pick(decisions, choice):
    """The method for all uses is one of those that remain, and the rule's."""
    pick, uses, infinite = choice.pick, choice.uses, decisions.marked(INFINITE)
    if pick is None:
        return
    assert pick.method not in infinite
    if pick.why == UNTOUCHED:
        assert choice.why_unranked == Unranked.NO_DIFFERENCE and pick.method == PRESENT
        assert all(use.signs[PRESENT] in (WITHIN, CHEAP) for use in uses)
        return
    if pick.score == COST:
        assert uses[-1].signs[pick.method] != WORSE
        return
    remaining = [
        m for m in decisions.methods
        if m not in infinite and all(use.signs[m] != WORSE for use in uses)
    ]  # fmt: skip
    named = [use.named for use in uses if use.named]
    everywhere = [m for m in remaining if all(m in of for of in named)]
    assert pick.method in (everywhere or remaining)
    if pick.why == DEFAULTED:
        assert pick.method == DEFAULT
        ranks = [{m: RANKS[use.signs[m]] for m in remaining} for use in uses]
        assert all(of_use[DEFAULT] == min(of_use.values()) for of_use in ranks)
    if pick.why == LOWEST:
        values = {m: decisions.rows[m, pick.score].mean for m in everywhere or remaining}
        assert values[pick.method] == min(values.values())


def check_words(decisions, choice, verdict):
    """The sentences say what the grid and the table say."""
    text = " ".join([verdict.headline, verdict.by_use])
    pick, uses = choice.pick, {use.label: use for use in choice.uses}
    name = "" if pick is None else method_name(pick.method)
    is_tie = choice.why_unranked == Unranked.NO_DIFFERENCE
    guessed = is_tie and pick is not None and pick.method != PRESENT
    assert ("If you must" in text) == guessed
    names = "|".join(re.escape(method_name(method)) for method in decisions.methods)
    chosen = re.findall(
        rf"(?:If you must [\w ]+, take|with the method) ({names})(?= for|[,.])", text
    )
    assert set(chosen) <= {name}
    assert not choice.overall or name in chosen or choice.overall == PRESENT
    table = ResultTable.of(decisions, TableSpec("t", "t", decisions.shown))
    of_table = {column.metric.key: column for column in table.columns}
    for lowest in re.findall(r"it has the lowest .+?: ([\d.]+) \(", text):
        column = of_table[pick.score]
        assert lowest == column.text(column.rows[pick.method].mean)
    for count in re.findall(r"(\w+) methods are equally good", text):
        remaining = [m for m in decisions.methods if m not in decisions.marked(INFINITE)]
        remaining = [m for m in remaining if all(use.signs[m] != WORSE for use in choice.uses)]
        assert 1 < COUNTS.index(count.lower()) <= len(remaining)
    errs = re.search(r"For ([\w ,]*) it still has errors that are larger", text)
    for label in labels_in(errs[1]) if errs else ():
        assert uses[label].signs[pick.method] == BEYOND
    for labels, count, signs in re.findall(
        r"For ([\w ,]+) take any of the (\w+) methods with (.+?) there", text
    ):
        for label in labels_in(labels):
            signed = [
                m for m, sign in uses[label].signs.items()
                if SIGNS[sign] in signs and m not in decisions.marked(INFINITE)
            ]  # fmt: skip
            assert COUNTS.index(count) == len(signed)
    check_answer(decisions, verdict)


def check_answer(decisions, verdict):
    """Yes, no and cannot tell are what the table marks, and what to take goes with it."""
    word, text = verdict.answer.word, verdict.headline
    if PRESENT not in decisions.methods:
        assert word == UNSURE
        return
    rows = [decisions.rows[PRESENT, use.metric] for use in verdict.uses if use.metric != COST]
    is_infinite = PRESENT in decisions.marked(INFINITE)
    assert (word == NO) == (is_infinite or any(row.beyond_floor for row in rows))
    assert word != YES or all(row.within_noise for row in rows)
    if "eave the probabilities as they are" in text:
        assert word != NO and verdict.overall in (PRESENT, None)
    if word == YES and verdict.overall not in (PRESENT, None) and COST not in text:
        found_worse = any(use.signs[PRESENT] == WORSE for use in verdict.uses)
        assert ("are fine, too" in text) == found_worse or "cost" in text


def labels_in(text):
    """The uses in a list such as `single decisions, shortlists and rankings`."""
    return re.split(r", | and ", text)
