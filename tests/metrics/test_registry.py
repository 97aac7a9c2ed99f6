"""One registry of metrics, open to one's own: keys, headings, and what is no metric."""

from collections.abc import Iterator

import pytest

from tests.forecasts import forecast_of
from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.metrics.registry import Metric, check_keys, metric

FAST = {"utilities": 0, "floor_repetitions": 0}
PAYOFFS = [1.0, 0.0, -1.0]


@pytest.fixture
def mine() -> Iterator[Metric]:
    m.register("u_mine", m.Linear(PAYOFFS))
    yield m.METRICS["u_mine"]
    m.METRICS.pop("u_mine", None)


def test_a_registered_metric_is_computed_with_the_others(mine):
    p, y = forecast_of("smooth", 50, 3, 0)
    card = m.scorecard(p, y, **FAST)
    assert list(card.metrics)[-1] == "u_mine"
    assert card.metrics["u_mine"] == m.Linear(PAYOFFS).calibration_errors(p, y)[0]
    assert metric("u_mine") is mine


def test_a_registered_metric_of_some_classes_is_not_that_of_all():
    p, y = forecast_of("smooth", 50, 3, 0)
    m.register("u_some", m.ClassWise((2,)))
    try:
        card = m.scorecard(p, y, utilities=0, floor_repetitions=4)
    finally:
        m.METRICS.pop("u_some", None)
    errors = m.ClassWise().calibration_errors(p, y)
    assert card.metrics["u_some"] == errors[2] < card.metrics["u_cwe"] == errors.max()
    floor = m.ClassWise((2,)).evaluate(p, y, repetitions=4).floor
    assert card["u_some"].floor == pytest.approx(floor, abs=1e-12)


def test_a_key_belongs_to_one_metric(mine):
    m.register("u_mine", m.Linear(PAYOFFS))  # once more is no second one
    assert m.METRICS["u_mine"] == mine
    with refuses("u_mine", fix="another"):
        m.register("u_mine", m.TopK())
    with refuses("u_cwe", fix="name"):
        m.scorecard(*forecast_of("smooth", 9, 3, 0), own={"u_cwe": m.TopK()}, **FAST)


def test_an_unknown_key_is_refused_with_what_is_near():
    check_keys(["u_cwe", "u_euros"], own=["u_euros"])
    with refuses("table", number="u_cwe?"):
        check_keys(["u_cwe", "u_cwo"], where="table")
    with refuses("metrics", number="accuracy, brier"):
        check_keys(["zzz"])
