"""Calibration in one pass: the bounds contain the exact errors, and batches add up."""

import copy
import warnings
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from tests.forecasts import forecast_of, labels_from
from tests.metrics.streams import ROUNDING, points, streamed
from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.metrics import reference as plain

CASES = 250


def repeated(p: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """The points as many times as their weights say."""
    rows = np.arange(len(p)) if weights is None else np.repeat(np.arange(len(p)), weights)
    return p[rows], labels[rows]


def test_bounds_contain_the_exact_errors_of_many_random_forecasts() -> None:
    gap = []
    for seed in range(CASES):
        p, y, w = points(seed)
        buckets = (60, 250, 1000)[seed % 3]
        streaming = streamed([m.ClassWise(), m.TopK()], p, y, w, buckets=buckets)
        result, whole = streaming.result(), repeated(p, y, w)
        exact = np.append(plain.class_wise_errors(*whole), plain.top_k_errors(*whole))
        assert (result.lower <= exact + ROUNDING).all(), seed
        assert (result.upper >= exact - ROUNDING).all(), seed
        gap.append((result.upper - result.lower).max())
        width = [plain.binned_error(p_c, whole[1] == c, 15, "equal_width")
                 for c, p_c in enumerate(whole[0].T)]  # fmt: skip
        assert result.equal_width[: p.shape[1]] == pytest.approx(width, abs=ROUNDING), seed
        mass = [plain.binned_error(p_c, whole[1] == c) for c, p_c in enumerate(whole[0].T)]
        low, high = result.equal_mass[:, : p.shape[1]]
        assert (low <= np.array(mass) + ROUNDING).all(), seed
        assert (high >= np.array(mass) - ROUNDING).all(), seed
    assert np.median(gap) < 0.02


UTILITIES = {
    "top-class": m.TopClass(),
    "some K": m.TopK(ks=range(1, 4)),
    "some classes": m.ClassWise(classes=[4, 1]),
    "discounted": m.DiscountedCumulativeGain(),
    "linear": m.Linear.sample(5, 5, 0),
    "rank": m.Rank.sample(5, 5, 0),
    "decision": m.Decision(np.random.default_rng(0).random((2, 5, 3))),
    "similarity": m.Similarity(np.eye(5) + 0.3 * (1 - np.eye(5))),
    "gain": m.GainMatrix.sample_aligned(4, 5, 0),
    "own": lambda p: 1 - p,
}


@pytest.mark.parametrize("name", UTILITIES)
def test_bounds_contain_the_exact_errors_of_every_class_of_utilities(name: str) -> None:
    from utility_calibration.metrics.utilities.function import utility_of

    for kind in ("smooth", "dyadic", "saturated", "flat"):
        p, y = forecast_of(kind, 400, 5, 0)
        result = streamed(UTILITIES[name], p, y).result()
        exact = utility_of(UTILITIES[name]).calibration_errors(p, y)
        assert result.lower.shape == exact.shape
        assert (result.lower <= exact + ROUNDING).all()
        assert (result.upper >= exact - ROUNDING).all()


def test_more_buckets_leave_less_open_and_scores_are_exact() -> None:
    p, y = forecast_of("smooth", 3000, 4, 1)
    w = np.random.default_rng(0).random(3000)
    results = [streamed(m.ClassWise(), p, y, w, 500, buckets=b).result() for b in (250, 1000, 4000)]
    gaps = [float((result.upper - result.lower).max()) for result in results]
    assert all(small < large / 2 for large, small in pairwise(gaps)) and gaps[-1] < 1e-3
    result = results[1]
    assert result.n == 3000
    scores = [
        m.accuracy(p, y, sample_weight=w),
        m.brier_score(p, y, sample_weight=w),
        m.negative_log_likelihood(p, y, sample_weight=w),
    ]
    assert [result.accuracy, result.brier, result.nll] == pytest.approx(scores, abs=ROUNDING)
    of_width = m.binned_class_wise_error(p, y, scheme="equal_width", sample_weight=w)
    assert result.equal_width.mean() == pytest.approx(of_width, abs=ROUNDING)
    number, worst = result.worst
    v = p[:, number]
    inside = (v >= worst.low) & (v <= worst.high)
    error = abs(np.sum(w * (v - (y == number)) * inside)) / w.sum()
    assert error == pytest.approx(worst.error, abs=ROUNDING)
    assert worst.error == result.lower.max()


def test_labels_of_probability_zero_are_counted() -> None:
    p, y = np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 0, 1])
    parts = [m.StreamingCalibration(m.ClassWise(), 3) for _ in range(2)]
    for streaming, rows in zip(parts, (slice(0, 3), slice(3, 4)), strict=True):
        streaming.update(p[rows], y[rows])
    assert parts[0].result().zero_likelihood == 1
    assert parts[0].merge(parts[1]).result().zero_likelihood == 2


def test_logits_with_impossible_classes_and_log_odds_are_read() -> None:
    p, y = forecast_of("one_hot", 50, 3, 0)
    with np.errstate(divide="ignore"):
        z = np.log(p).astype(np.float32)
    by_logits = streamed(m.TopK(), z, y, logits=True).result()
    assert by_logits.upper == pytest.approx(streamed(m.TopK(), p, y).result().upper, abs=ROUNDING)
    odds = np.random.default_rng(0).normal(size=50)
    two, hit = m.StreamingCalibration(m.ClassWise(), 2, logits=True), y > 0
    two.update(odds, hit.astype(int))
    second = 1 / (1 + np.exp(-odds))
    both = np.column_stack([1 - second, second])
    expected = streamed(m.ClassWise(), both, hit.astype(int)).result()
    assert two.result().lower == pytest.approx(expected.lower, abs=1e-9)


def test_logits_whose_digits_are_lost_are_told() -> None:
    rng = np.random.default_rng(0)
    z, y = 3 * rng.normal(size=(60, 3)), np.arange(60) % 3
    offset = 1e8 + 1e6 * rng.random((60, 1))
    streaming = m.StreamingCalibration(m.TopK(), 3, logits=True)
    for lost in ((z + offset).astype(np.float32), (z + offset).astype(np.float32).astype(float)):
        with pytest.warns(UserWarning, match="step of 8"):
            streaming.update(lost, y)
    for kept in (z + offset, z.astype(np.float16), (100 * z).astype(np.float32)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            streaming.update(kept, y)


def test_bad_batches_change_nothing() -> None:
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), size=40), rng.integers(3, size=40)
    calls = []

    def own(forecast: np.ndarray) -> np.ndarray:
        calls.append(len(forecast))
        return forecast * (3 if len(calls) > 1 else 1)  # leaves [-1, 1] from the second batch on

    streaming = m.StreamingCalibration([m.ClassWise(), own], 3)
    streaming.update(p, y)
    before = streaming.result()
    bad = [
        (p, y + 3, "labels", "add the columns"),
        (p, y[:-1], "labels", "one per row"),
        (p / 2, y, "probabilities", "divide each row"),
        (p - 0.5, y, "probabilities", "logits"),
        (p[:, :2] / p[:, :2].sum(axis=1, keepdims=True), y, "probabilities", "column per class"),
    ]
    with refuses("sample_weight", 0, fix="not negative"):
        streaming.update(p, y, sample_weight=-np.ones(40))
    for probabilities, labels, field, fix in bad:
        with refuses(field, fix=fix):
            streaming.update(probabilities, labels)
    with refuses("utility", fix="bounds"):
        streaming.update(np.eye(3)[y], y)
    after = streaming.result()
    assert after.n == before.n == 40
    assert (after.lower == before.lower).all() and (after.upper == before.upper).all()


def test_the_size_is_told_before_it_is_taken_and_many_classes_fit() -> None:
    small = m.StreamingCalibration(m.TopClass(), 10)
    assert small.nbytes < 40_000
    with refuses("utilities", fix="choose utilities"):
        m.StreamingCalibration(m.TopK(), 200_000 // 2)
    with refuses(number="update"):
        small.result()
    classes, n = 20_000, 64
    z = torch.randn(n, classes, generator=torch.Generator().manual_seed(0))
    y = z.argmax(dim=1)
    chosen = [m.TopK(ks=range(1, 21)), m.TopClass(), m.ClassWise(classes=[int(y[0]), 5])]
    streaming = m.StreamingCalibration(chosen, classes, logits=True)
    streaming.update(z, y)
    p = torch.softmax(z.double(), dim=1)
    exact = np.concatenate([one.calibration_errors(p.numpy(), y.numpy()) for one in chosen])
    result = streaming.result()
    assert (result.lower <= exact + 1e-9).all() and (result.upper >= exact - 1e-9).all()
    assert result.accuracy == 1


def test_floor_and_bounds_of_one_pass_are_near_those_of_drawn_labels() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=2000)
    y = labels_from(p, rng)
    for utility in (m.ClassWise(), m.TopClass()):
        result = streamed(utility, p, y, size=500, buckets=8000).result()
        floor, drawn = result.noise_floor(), utility.evaluate(p, y, repetitions=200).floor
        assert 0.9 * drawn.q95 < floor.q95 < 1.3 * drawn.q95
        assert 0.9 * drawn.mean < floor.mean < 1.4 * drawn.mean
        assert floor.p_value > 0.01
        bounds, exact = result.calibration_interval(), utility.evaluate(p, y).interval
        assert bounds.lower == 0 == exact.lower
        assert bounds.lower <= bounds.estimate <= bounds.upper < 1.1 * exact.upper
        assert bounds.upper < bounds.upper_finite < 1.1 * exact.upper_finite
    wrong = streamed(m.ClassWise(), p, np.zeros(2000, int)).result()
    assert wrong.noise_floor().p_value < 1e-6 and wrong.calibration_interval().lower > 0.3


@pytest.mark.parametrize("weight", [0.5, 1 / 3, 3.7, 1e-7, 1e20])
def test_equal_weights_that_are_no_counts_are_none(weight: float) -> None:
    p, y, _ = points(4)
    is_counted = np.arange(len(p)) % 4 > 0  # a point of weight 0 is no point
    expected = streamed([m.ClassWise(), m.TopK()], p[is_counted], y[is_counted]).result()
    found = streamed([m.ClassWise(), m.TopK()], p, y, weight * is_counted).result()
    same = partial(pytest.approx, abs=ROUNDING)
    assert found.n == expected.n == is_counted.sum()
    for name in ("lower", "upper", "equal_width", "equal_mass", "brier", "nll", "tied_share"):
        assert getattr(found, name) == same(getattr(expected, name)), name
    assert found.noise_floor() == same(expected.noise_floor())
    assert found.calibration_interval() == same(expected.calibration_interval())


def test_equal_weights_of_several_streams_are_none_together_and_others_are_not() -> None:
    p, y, _ = points(4)
    one, other = (streamed([m.TopK()], p, y, np.full(len(p), weight)) for weight in (0.5, 0.25))
    assert not one.has_weights and not other.has_weights
    both = copy.deepcopy(one).merge(one)
    assert not both.has_weights
    assert both.result().n == 2 * len(p)
    assert one.merge(other).has_weights
