"""What a new user types first: utilities show what they are, and slips get one line with a fix."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from tests.refusals import fails, refuses
from utility_calibration import metrics as m
from utility_calibration.calibrators import CalibratedModel, LogitShiftPatching, TemperatureScaling
from utility_calibration.metrics.plots import UtilityDisplay

RANDOM = np.random.default_rng(0)
P, Y = RANDOM.dirichlet(np.ones(3), 60), np.arange(60) % 3


def even(p):
    return p * 0 + 1


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (m.TopK, lambda: m.TopK([1]), "TopK()"),
        (lambda: m.TopK((1,)), m.TopClass, "TopK(ks=(1,))"),
        (lambda: m.Linear([0, 1]), lambda: m.Linear([1, 0]), "Linear(payoffs=<1 × 2 numbers>)"),
        (lambda: m.Linear([0, 1]), lambda: m.Rank([0, 1]), "Linear(payoffs=<1 × 2 numbers>)"),
        (
            lambda: m.GainMatrix(np.eye(2)),
            lambda: m.GainMatrix(np.ones((2, 2))),
            "GainMatrix(gains=<1 × 2 × 2 numbers>)",
        ),
        (
            lambda: m.FunctionUtility(even),
            lambda: m.FunctionUtility(abs),
            "FunctionUtility(function=even)",
        ),
    ],
)
def test_utilities_of_equal_values_are_equal_and_show_what_they_are_made_of(one, other, shown):
    assert repr(one()) == shown
    assert one() == one() != other()
    assert len({one(), one(), other()}) == 2


SLIPS = [
    ("ks", "(3,)", lambda: m.TopK(3)),
    ("utility", "TopK(", lambda: m.calibration_scorer(m.TopK)),
    ("utility", "ClassWise(", lambda: m.StreamingCalibration(m.ClassWise, 3)),
    ("utility", "Decision(", lambda: m.scorecard(P, Y, own={"mine": m.Decision})),
    ("utility", "TopK()", lambda: m.calibration_scorer("TopK")),
    ("own", "own={", lambda: m.scorecard(P, Y, own=m.TopK())),
    ("utilities", "own={", lambda: m.scorecard(P, Y, utilities=[m.TopK()])),
    ("confidence", ".95", lambda: m.scorecard(P, Y, confidence=95)),
    ("losses", "2 or 3 dimensions", lambda: m.Decision(np.ones(3))),
    ("", "did you mean utilities?", lambda: m.scorecard(P, Y, utilties=0)),
    ("", "did you mean noise_seed?", lambda: m.scorecard(P, Y, noiseseed=0)),
]


@pytest.mark.parametrize(("field", "fix", "call"), SLIPS)
def test_a_slip_gets_one_line_with_the_fix(field, fix, call):
    with fails(m.InputError, field, fix):
        call()


def test_rows_of_pandas_in_different_orders_are_refused():
    frame, truth = pd.DataFrame(P), pd.Series(Y)
    moved = truth.sample(frac=1, random_state=0)
    fitted = TemperatureScaling().fit(np.log(frame), truth)
    groups = pd.Series(np.where(Y == 0, "a", "b"))
    shifted = LogitShiftPatching(steps=1).fit(np.log(frame), truth)
    calls = [
        lambda: m.scorecard(frame, moved, utilities=0),
        lambda: m.StreamingCalibration(m.TopK(), 3).update(frame, moved),
        lambda: m.TopK().evaluate(frame, moved),
        lambda: m.Decision(np.eye(3)).mean_loss(frame, moved),
        lambda: m.Decision(np.eye(3)).constant_losses(truth, sample_weight=moved),
        lambda: m.Decision(np.eye(3)).net_benefit(frame, moved, thresholds=[0.5]),
        lambda: m.utility_calibration(frame[0], moved),
        lambda: m.worst_interval(P[:, 0], truth, sample_weight=moved),
        lambda: shifted.predict_proba(np.log(frame), groups=groups.loc[moved.index]),
        lambda: CalibratedModel(GaussianNB()).fit(frame, moved),
        lambda: m.accuracy(P, truth, sample_weight=moved),
        lambda: fitted.fit(frame, moved),
        lambda: fitted.score(frame, moved),
        lambda: UtilityDisplay.from_predictions(frame, moved),
    ]
    for call in calls:
        with refuses(fix=".to_numpy()"):
            call()
    again = moved.set_axis(range(100, 160))  # another index is none of the forecast's
    assert m.accuracy(frame, again) == m.accuracy(P, moved.to_numpy())
    with refuses("sample_weight"):  # against the forecast, although the labels lie between them
        m.accuracy(frame, again, sample_weight=moved)


def test_a_function_is_a_utility_wherever_one_is_taken():
    wrapped = m.FunctionUtility(even)
    assert m.calibration_scorer(even).utility == wrapped
    card = m.scorecard(P, Y, utilities=0, floor_repetitions=0, own={"mine": even})
    assert card.metrics["mine"] == wrapped.calibration_errors(P, Y)[0]
    assert f"{card.metrics['mine']:.4f}" in repr(card).partition("\nmine ")[2].split()[0]


def test_a_scorecard_shows_few_lines_and_goes_to_a_table_and_to_plain_numbers():
    card = m.scorecard(P, Y, utilities=20, floor_repetitions=20)
    assert len(repr(card).splitlines()) <= 30
    numbers, frame = card.to_dict(), card.frame()
    assert all(type(number) is float for number in json.loads(json.dumps(numbers)).values())
    assert numbers["u_topk_upper"] == card["u_topk"].interval.upper
    assert numbers["u_cwe_by_chance"] == frame.loc["u_cwe", "q95"]
    assert list(frame.index) == list(card.metrics) and np.isnan(frame.loc["brier", "upper"])
    unfloored = m.scorecard(P, Y, utilities=0, floor_repetitions=0)
    assert unfloored.to_dict() == unfloored.metrics
