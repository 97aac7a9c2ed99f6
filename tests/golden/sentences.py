"""All sentences that a report says of a forecast, with a made-up example each, as a page of docs/.

The cases are those of tests/pipeline/reporting/test_verdict.py, whose facts are tested there.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from tests.pipeline.reporting.conftest import decided
from tests.pipeline.reporting.test_figures import BENCHMARKS
from tests.pipeline.reporting.test_verdict import CASES
from tests.pipeline.reporting.verdicts import PLACE, cell, verdict
from utility_calibration.metrics.registry import PURPOSES
from utility_calibration.pipeline.reporting.answer import answer_of
from utility_calibration.pipeline.reporting.group_words import (
    words_of_a_small_group,
    words_of_gap,
    words_of_repairs,
)
from utility_calibration.pipeline.reporting.keeping import how_to_keep
from utility_calibration.pipeline.reporting.leaderboard import Leaderboard, leaderboard_of
from utility_calibration.pipeline.reporting.limits import left_words
from utility_calibration.pipeline.reporting.names import TITLES
from utility_calibration.pipeline.reporting.table_notes import BEYOND as BEYOND_NOTE
from utility_calibration.pipeline.reporting.table_notes import (
    CERTIFICATE,
    FLOOR,
    INTERVALS,
    TESTS,
    TOGETHER,
    WITHOUT_FLOOR,
)
from utility_calibration.pipeline.reporting.tables import FLOORS_NOTE
from utility_calibration.pipeline.reporting.verdict import HEADINGS, LEFT
from utility_calibration.pipeline.reporting.wording import TextTable, escape_markdown
from utility_calibration.pipeline.reporting.worst import LOSSES, Worst
from utility_calibration.pipeline.scoring.decisions import Rarest
from utility_calibration.pipeline.scoring.groups import OUTCOMES, Gap, Repair

BEGINNING = """# What do the programs say?

You want to know what a sentence of a report means, or to judge all of them together. Here is every
sentence that `utility-calibration score` and `report` say of a forecast, with a made-up example,
and typical refusals. A test writes this page from the code, so it cannot differ from it.
[Read results](reading-results.md) explains the numbers, [Choose](choosing.md) the rules."""
BEYOND = {"beyond_floor": True, "floor_q95": 0.011}
GAINS = {"fresh_gain": 0.013}
PLACES = {
    "errors beyond chance": ("u_cwe", {"name": "class no finding"}, BEYOND),
    "too high, with an example": (
        "u_topk", {"name": "most probable class", "gap": -0.06, **GAINS}, BEYOND
    ),
    "predictions that are better not acted on": (
        "u_cwe", {"name": "class cat", "act_from": None, **GAINS}, BEYOND
    ),
    "acting too seldom": ("u_cwe", {"name": "class cat", "act_from": 0.1, **GAINS}, BEYOND),
    "a utility that is no probability": ("u_dcg", {"name": "discount exponent 2"}, BEYOND),
    "a utility of your own": ("u_payoffs", {"name": "treat"}, BEYOND),
    "your losses": ("u_losses", {"low": -0.83, "high": -0.01, "name": ""}, BEYOND),
    "no error beyond chance": ("u_cwe", {"name": "class cat"}, {}),
    "too few points of a class": ("u_cwe", {"name": "class cat"}, {"within_noise": None}),
    "no level of chance": ("u_cwe", {"name": "class cat"}, {"beyond_floor": None}),
    "all as predicted": ("u_cwe", {"name": "class cat", "gap": 0.0}, {}),
}  # fmt: skip
"""Present forecasts: the metric, what differs from PLACE, and what differs in the table's cell."""
MORE = {
    "two uses, one of them fine": ({"u_cwe": BEYOND, "u_topk": {}}, {}),
    "zeros that came true": ({"u_cwe": {}}, {"marks": {"uncalibrated": ("∞",)}}),
    "too few points": (
        {"u_cwe": {}}, {"test_points": 72, "refused": "Too few test points.", "splits": 3}
    ),
}  # fmt: skip


OWN_LABELS = ("predicted cost", "payoffs_ann")
ALIKE = (
    "one split",
    "one of two is",
    "for one use",
    "an infinite likelihood",
    "a bound of one split",
    "too few points to rule out a large error",
    "the default that has a mark",
    "an own utility",
    "a bound of ten splits",
    "and where one does",
)
"""Cases of the verdict whose sentences others have, too."""


def page_of_sentences(refused: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The lines of the page; `refused`: of tests/golden/refusals.py."""
    yield from (BEGINNING, "")
    yield from ("## Can you trust the model's probabilities as they are?", "")
    yield from map(item, answers())
    verdicts = {case: verdict(columns, **known) for case, (columns, known, *_) in CASES.items()}
    # A report has its cautions below the answer.
    cautions = dict.fromkeys(line for one in verdicts.values() for line in one.cautions)
    yield from (item(("a rare class, in general", line)) for line in cautions)
    yield from ("", "## What to take", "")
    yield "In brackets is what the grid shows."
    yield ""
    legend: dict[str, None] = {}
    details: dict[str, dict[str, None]] = {heading: {} for heading in HEADINGS}
    for case, one in verdicts.items():
        legend |= dict.fromkeys(one.legend)
        for heading, lines in one.details.items():
            details[heading] |= dict.fromkeys(lines)
        grid = "; ".join(" ".join(row) for row in one.grid)
        if case not in ALIKE:
            yield item((case, one.headline, one.by_use, f"[{grid}]"))
    yield from map(item, advice_on_the_present())
    yield from ("", "## Over several benchmarks", "")
    yield from (f"- {escape_markdown(board.headline)}" for board in leaderboards())
    yield from ("", "## How to keep it", "")
    yield "```bash"
    command = "utility-calibration score my.csv --method vector --save calibrator.npz"
    yield from how_to_keep("vector", Path("my.csv"), None, command)
    yield "```"
    yield from ("", "## What the signs mean", "")
    yield from (f"- {escape_markdown(line)}" for line in legend)
    yield from ("", "## Details of the page", "")
    left = left_words(
        {"uncalibrated": (0.26, 0.04), "vector": (0.001, 0.002)},
        {"uncalibrated": 0.83, "vector": 0.57},
    )
    details[LEFT] |= dict.fromkeys(left)
    for heading, sentences in details.items():
        if sentences:
            yield item((heading, *once(sentences)))
    yield from ("", "## Where does a method fail?", "")
    for case in ("errors beyond chance", "no error beyond chance", "all as predicted"):
        key, changes, row = PLACES[case]
        words = Worst(**PLACE | changes | {"is_beyond": bool(row)}).words(key)
        yield f"- {escape_markdown(words)}."
    yield from ("", "## Below the table of numbers", "")
    yield from (f"- {escape_markdown(note)}" for note in notes_of_tables())
    yield from ("", "## Groups of cases", "")
    yield from (f"- {escape_markdown(line)}" for line in of_groups())
    yield from ("", "## What is refused", "")
    yield "One line names file, column or option, what is wrong where, and what settles it."
    yield ""
    yield from map(item, refused)


def once(sentences: Iterable[str]) -> Iterable[str]:
    """Of sentences that differ in numbers, names of methods and of uses alone the first one."""
    kinds: dict[str, str] = {}
    names = "|".join(map(re.escape, [*TITLES.values(), *PURPOSES.values(), *OWN_LABELS]))
    for sentence in sentences:
        kinds.setdefault(re.sub(rf"[\d.]+|{names}", "", sentence), sentence)
    return kinds.values()


def item(parts: tuple[str, ...]) -> str:
    """A line of a list: the case in italics, then what is said."""
    case, *sentences = parts
    return f"- *{case}*: " + " ".join(escape_markdown(text) for text in sentences if text)


def answers() -> Iterator[tuple[str, ...]]:
    """The answers on present forecasts, with the worst places."""
    rarest = Rarest(33, 1000, 0.3, 25, "malignant")
    for case, (key, changes, row) in PLACES.items():
        decisions = decided({key: {"uncalibrated": cell(0.05, True, **row)}}, rarest=rarest)
        one = Worst(**PLACE | changes)
        worst = {key: {"uncalibrated": one.as_cost() if key == LOSSES else one}}
        answer = answer_of(decisions, worst)
        yield case, answer.sentence, answer.reason, answer.place, answer.example
    for case, (columns, known) in MORE.items():
        rows = {key: {"uncalibrated": cell(0.05, True, **row)} for key, row in columns.items()}
        answer = answer_of(decided(rows, **known), {})
        yield case, answer.sentence, answer.reason
    answer = answer_of(decided({"u_cwe": {"vector": cell(0.1)}}), {})
    yield "not scored", answer.sentence, answer.reason


def advice_on_the_present() -> Iterator[tuple[str, ...]]:
    """What to take where the forecast as it is takes part."""
    for case, present, other in (
        ("the present probabilities are the best", cell(0.1, True), cell(0.2)),
        ("nothing helps", cell(0.1, True, **BEYOND), cell(0.2)),
        ("a tie", cell(0.1, True), cell(0.1, True)),
        ("a better one though all is well", cell(0.2), cell(0.1, True)),
        ("a better one that still errs", cell(0.2, **BEYOND), cell(0.1, True, **BEYOND)),
    ):
        one = verdict({"u_cwe": {"uncalibrated": present, "vector": other}})
        grid = "; ".join(" ".join(row) for row in one.grid)
        yield case, one.headline, one.by_use, f"[{grid}]"


def leaderboards() -> Iterator[Leaderboard]:
    """One whose first method is nowhere worse than the best, and one without such a method."""
    board = leaderboard_of(BENCHMARKS)
    assert board is not None
    yield board
    frame: pd.DataFrame = board.frame.assign(worse=[1, 3])
    yield Leaderboard(board.benchmarks, TextTable("", (), (), ""), frame)


def notes_of_tables() -> Iterator[str]:
    """What marks and numbers of a table mean."""
    yield from INTERVALS.values()
    yield from TESTS.values()
    yield from (BEYOND_NOTE, TOGETHER, FLOOR, FLOORS_NOTE)
    yield f"Vector Scaling: {WITHOUT_FLOOR}"
    yield CERTIFICATE.format("U_CWE and U_topK", "", "Temp. Scaling .13, Vector Scaling .12")


def of_groups() -> Iterator[str]:
    """How groups differ, and what patches of groups changed."""
    yield words_of_a_small_group("tiny", 9)
    sizes = {"values": (0.4, 0.2), "difference": 0.2}
    for p_value in (0.01, 0.3, None):
        names = {"larger": "south", "smaller": "north"}
        yield words_of_gap(
            Gap("vector", "u_cwe", **names, **sizes, beyond=(0.3, 0.1), p_value=p_value)
        )
    yield words_of_gap(Gap("vector", "u_cwe", **names, **sizes, beyond=(0, -0.1), p_value=1.0))
    for outcome in OUTCOMES.values():
        repair = Repair(
            "south", "u_cwe", "logit_shift_groups", "temperature", (0.2, 0.1), 0.05, outcome
        )
        yield from words_of_repairs([repair], {"logit_shift_groups": {"patches": [3, 4]}})
