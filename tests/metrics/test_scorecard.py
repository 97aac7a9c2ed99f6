"""The scorecard: every metric under its key, on ordinary and on odd forecasts."""

import numpy as np
import pytest
import torch

from tests.cards import content_of, draws_of, parts_of
from tests.forecasts import forecast_of
from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.metrics import forecast as forecasts
from utility_calibration.metrics import reference_additions

SMALL = {"utilities": 40, "floor_repetitions": 6}
CURVES = {"linear", "rank"}


def similarity_of(classes):
    matrix = np.random.default_rng(7).uniform(-1, 1, size=(classes, classes))
    np.fill_diagonal(matrix, 1)
    return matrix


def one_by_one(p, y):
    """Every metric through its own public name."""
    top_k, class_wise = m.TopK().calibration_errors(p, y), m.ClassWise().calibration_errors(p, y)
    return {
        "accuracy": m.accuracy(p, y),
        "brier": m.brier_score(p, y),
        "nll": m.negative_log_likelihood(p, y),
        "two_bin": m.two_bin_error(p, y),
        "cwe_bin": m.binned_class_wise_error(p, y),
        "tce_bin": m.binned_top_class_error(p, y),
        "u_cwe": class_wise.max(),
        "u_topk": top_k.max(),
        "u_tce": m.TopClass().calibration_errors(p, y)[0],
        "u_comb": max(class_wise.max(), top_k.max()),
        "u_dcg": m.DiscountedCumulativeGain().calibration_errors(p, y).max(),
        "u_w2v": m.Similarity(similarity_of(p.shape[1])).calibration_errors(p, y)[0],
        **{f"u_lin_{name}": value for name, value in sampled(m.Linear, 0, p, y).items()},
        **{f"u_rank_{name}": value for name, value in sampled(m.Rank, 1, p, y).items()},
    }


def sampled(family, seed, p, y):
    errors = family.sample(40, p.shape[1], seed).calibration_errors(p, y)
    return {"median": np.median(errors), "q95": np.quantile(errors, 0.95)}


@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic", "one_hot", "flat"])
@pytest.mark.parametrize(("n", "classes"), [(5, 7), (200, 6)])
def test_every_key_holds_the_metric_of_its_name(kind, n, classes):
    p, y = forecast_of(kind, n, classes, 0)
    card = m.scorecard(p, y, similarity=similarity_of(classes), **SMALL)
    assert list(card.metrics) == list(m.METRICS)
    floors = parts_of(card, "floor")
    assert list(floors) == [key for key in m.METRICS if m.METRICS[key].has_floor]
    for key, value in one_by_one(p, y).items():
        assert card.metrics[key] == pytest.approx(value, abs=1e-12), key
    assert all(isinstance(value, float) for value in card.metrics.values())
    assert np.isfinite(list(floors.values())).all()
    assert set(card.curves) == CURVES
    for curve in card.curves.values():
        assert all(line.shape == (40,) for line in curve)
        low, mean, high = curve.floor_q05, curve.floor_mean, curve.floor_q95
        assert all((np.diff(line) >= -1e-12).all() for line in (low, mean, high))
        assert (low - 1e-12 <= mean).all() and (low - 1e-12 <= high).all()


@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic"])
def test_the_worst_utility_and_its_interval_explain_the_number(kind):
    p, y = forecast_of(kind, 300, 6, 2)
    card = m.scorecard(p, y, similarity=similarity_of(6), **SMALL)
    for key, worst in parts_of(card, "worst").items():
        assert worst.error == pytest.approx(card.metrics[key], abs=1e-12), key
        assert worst.sign in (-1, 1)
        assert 0 <= card[key].gain.gain <= worst.error + 1e-12
    chosen, gain = card["u_cwe"].worst, card["u_cwe"].gain
    v, u = p[:, chosen.utility], 1.0 * (y == chosen.utility)
    again = m.worst_interval(v, u)
    assert [getattr(chosen, name) for name in again._fields] == pytest.approx(list(again))
    assert gain.gain == pytest.approx(reference_additions.acting_gain(v, u), abs=1e-12)
    alone = m.ClassWise().evaluate(p, y, repetitions=SMALL["floor_repetitions"])
    for part in ("errors", "error", "worst", "floor", "floor_draws"):
        np.testing.assert_allclose(getattr(card["u_cwe"], part), getattr(alone, part), atol=1e-12)
    assert card["u_tce"].worst.utility == 0
    assert 0 <= card["u_topk"].worst.utility < 6  # K - 1


def test_the_same_seeds_give_the_same_scorecard_and_others_another():
    p, y = forecast_of("smooth", 80, 4, 5)
    first = m.scorecard(p, y, **SMALL)
    np.testing.assert_equal(content_of(m.scorecard(p, y, **SMALL)), content_of(first))
    other = m.scorecard(p, y, noise_seed=1, **SMALL)
    assert other.metrics == first.metrics
    assert parts_of(other, "floor") != parts_of(first, "floor")
    np.testing.assert_array_equal(other.curves["linear"].errors, first.curves["linear"].errors)
    resampled = m.scorecard(p, y, utility_seed=1, **SMALL)
    for key, value in resampled.metrics.items():
        assert (value != first.metrics[key]) == m.METRICS[key].sampled, key
    assert (resampled.curves["linear"].errors != first.curves["linear"].errors).any()


def test_what_is_not_asked_for_is_left_out():
    p, y = forecast_of("smooth", 40, 3, 6)
    card = m.scorecard(p, y, utilities=40, floor_repetitions=0)
    assert card.metrics == pytest.approx(m.scorecard(p, y, **SMALL).metrics, rel=1e-12)
    assert parts_of(card, "floor") == parts_of(card, "interval") == {}
    assert card.interval is None
    assert {family: len(curve.floor_q95) for family, curve in card.curves.items()} == dict.fromkeys(
        ("linear", "rank"), 0
    )
    assert list(card.metrics) == [key for key in m.METRICS if key != "u_w2v"]
    card = m.scorecard(p, y, utilities=0, floor_repetitions=2)
    assert card.curves == {}
    assert not any(m.METRICS[key].sampled for key in card.metrics)


def test_options_reach_the_metrics_they_are_for():
    p, y = forecast_of("smooth", 150, 4, 8)
    plain = m.scorecard(p, y, **SMALL).metrics
    card = m.scorecard(p, y, bins=4, class_weights="prior", exponents=(3.0,), **SMALL).metrics
    assert card["cwe_bin"] == pytest.approx(
        m.binned_class_wise_error(p, y, bins=4, weights="prior")
    )
    assert card["tce_bin"] == pytest.approx(m.binned_top_class_error(p, y, bins=4))
    gain = m.DiscountedCumulativeGain((3.0,)).calibration_errors(p, y)
    assert card["u_dcg"] == pytest.approx(gain[0])
    untouched = ("accuracy", "brier", "nll", "u_cwe", "u_topk", "u_tce", "u_comb")
    assert [card[key] for key in untouched] == [plain[key] for key in untouched]


class Tables(m.UtilityClass):
    """Utilities of one's own, held in a list, of which Python cannot say whether two are equal."""

    def __init__(self, tables):
        self.tables = tables

    def count(self, classes):
        return len(self.tables)

    def outcome_utilities(self, forecast, index):
        return np.broadcast_to(self.tables[index], forecast.probabilities.shape)


OWN = {
    "some classes": {"one": m.ClassWise((3,)), "two": m.ClassWise((2, 4))},
    "the name of a family of users": {"linear": m.Linear([[1, 0, 0, -1, 0]]), "rank": m.TopK((3,))},
    "lists of arrays": {"one": Tables([np.eye(5)[0]]), "two": Tables([np.eye(5)[1]])},
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_own_utilities_have_their_own_error_and_floor(own):
    """Those of another object were reported: of all classes, or of the sampled users."""
    p, y = forecast_of("smooth", 80, 5, 0)
    card = m.scorecard(p, y, own=own, **SMALL)
    for key, utilities in own.items():
        errors, floor = utilities.calibration_errors(p, y), card[key].floor
        assert card.metrics[key] == pytest.approx(errors.max(), abs=1e-12)
        assert card[key].worst.utility == errors.argmax()
        alone = utilities.evaluate(p, y, repetitions=SMALL["floor_repetitions"]).floor
        assert floor == pytest.approx(alone, abs=1e-12)


def test_batches_average_the_utility_metrics_over_all_points_and_leave_the_others():
    p, y = forecast_of("smooth", 320, 4, 9)
    full = m.scorecard(p, y, similarity=similarity_of(4), **SMALL)
    card = m.scorecard(p, y, similarity=similarity_of(4), utility_batch=60, **SMALL)
    order = torch.randperm(320, generator=torch.Generator().manual_seed(0)).numpy()
    parts = [one_by_one(p[part], y[part]) for part in np.array_split(order, 5)]
    for key in m.METRICS:
        if m.METRICS[key].of_utilities:
            expected = np.mean([part[key] for part in parts])
            assert card.metrics[key] == pytest.approx(expected, abs=1e-12), key
        else:
            assert card.metrics[key] == full.metrics[key], key
            floors = [parts_of(each, "floor").get(key) for each in (card, full)]
            assert floors[0] == floors[1], key
    assert card["u_topk"].floor.mean > 1.5 * full["u_topk"].floor.mean
    for key, worst in parts_of(card, "worst").items():
        assert worst.error == pytest.approx(max(part[key] for part in parts), abs=1e-12)
    linear = m.Linear.sample(40, 4, 0)
    errors = [linear.calibration_errors(p[part], y[part]) for part in np.array_split(order, 5)]
    np.testing.assert_allclose(card.curves["linear"].errors, np.mean(errors, axis=0), atol=1e-12)


def test_rows_that_do_not_sum_to_one_pass_only_when_asked_for():
    """As one-vs-all isotonic regression leaves them: sums from 0 to above 1, exact ends.

    No label can be drawn from them, so floors and certificates would speak of other rows.
    """
    random = np.random.default_rng(12)
    p = random.choice([0.0, 0.1, 0.35, 1.0], p=[0.5, 0.3, 0.15, 0.05], size=(150, 5))
    p[0], p[1] = 0, 1
    y = random.integers(5, size=150)
    with refuses("probabilities", fix="divide each row"):
        m.scorecard(p, y, **SMALL)
    card = m.scorecard(p, y, rows_sum_to_one=False, bootstrap_repetitions=2, **SMALL)
    assert all(np.isfinite(value) for value in card.metrics.values())
    expected = ((p - np.eye(5)[y]) ** 2).sum(axis=1).mean()
    assert card.metrics["brier"] == pytest.approx(expected)
    assert card.metrics["accuracy"] == pytest.approx((p.argmax(axis=1) == y).mean())
    assert card["u_topk"].worst.error == pytest.approx(card.metrics["u_topk"], abs=1e-12)
    assert parts_of(card, "floor") == parts_of(card, "interval") == {}
    assert card.interval is None
    assert {family: len(curve.floor_q95) for family, curve in card.curves.items()} == dict.fromkeys(
        ("linear", "rank"), 0
    )
    resampled = {f"bootstrap_{key}" for key in card.metrics if m.METRICS[key].resampled}
    assert set(draws_of(card)) == resampled


def test_a_large_forecast_worked_on_by_parts_has_the_scorecard_of_a_small_one(monkeypatch):
    random = np.random.default_rng(4)
    p = random.dirichlet(np.full(6, 0.4), size=80)
    p[[3, 7, 50]] = p[20]
    y = random.integers(6, size=80)
    options = {"utilities": 30, "floor_repetitions": 25, "similarity": np.eye(6)}
    options["own"] = {"u_rank": m.Rank([[3, 2, 1, 0, 0, 0]])}
    whole = m.scorecard(p, y, **options)
    monkeypatch.setattr(forecasts, "LARGEST_WHOLE", 100)
    monkeypatch.setattr(forecasts, "PART", 42)
    parts = m.scorecard(p, y, **options)
    found, expected = content_of(parts), content_of(whole)
    assert found.keys() == expected.keys()
    for name, numbers in found.items():
        np.testing.assert_allclose(numbers, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_the_report_says_which_purposes_are_within_noise(capsys):
    p, y = forecast_of("smooth", 400, 3, 0)
    card = m.scorecard(p, y, utilities=0, bootstrap_repetitions=0)
    card.report()
    printed = capsys.readouterr().out.splitlines()
    is_within = card.metrics["u_topk"] <= card["u_topk"].floor.q95
    within, _, beyond = printed[0].partition("eyond noise")
    assert ("shortlists" in within) == is_within != ("shortlists" in beyond)
    numbers = next(line for line in printed if line.startswith("shortlists")).split()[1:]
    bound = card["u_topk"].interval.upper
    expected = [card.metrics["u_topk"], card["u_topk"].floor.q95, bound]
    assert [float(number) for number in numbers] == pytest.approx(expected, abs=5e-5)
    row = "</td><td>".join(["<tr><td>shortlists", *numbers])
    assert row in card._repr_html_() and printed[0] in card._repr_html_()


TIED = [[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [0.4, 0.2, 0.4], [0.1, 0.2, 0.7]]
"""Two of four points have several most probable classes; two smaller ones may be equal."""


def test_the_share_of_ties_is_told_at_every_door():
    y = [0, 1, 0, 2]
    card = m.scorecard(TIED, y, utilities=0, floor_repetitions=0)
    result = m.TopK().evaluate(TIED, y, repetitions=5)
    streaming = m.StreamingCalibration(m.TopK(), classes=3)
    streaming.update(TIED[:1], y[:1])
    streaming.update(TIED[1:], y[1:])
    logits = m.StreamingCalibration(m.ClassWise(), classes=3, logits=True)
    logits.update(np.log(np.array(TIED) + 1e-300), y)
    for door in (card, result, streaming.result(), logits.result()):
        assert door.tied_share == 0.5
    assert "50 % of the points" in repr(card) and "50 % of the points" in repr(result)
    alone = m.scorecard(TIED[1::2], y[1::2], utilities=0, floor_repetitions=0)
    assert alone.tied_share == 0 and "several" not in repr(alone)


def test_arrays_of_the_caller_stay_as_they_are():
    """Predictions are rounded in place only where they are no view of the probabilities."""
    p = np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=60)
    before = p.copy()
    options = {"utilities": 8, "floor_repetitions": 20, "bootstrap_repetitions": 20}
    m.scorecard(p, p.argmax(axis=1), **options)
    assert np.array_equal(p, before)
