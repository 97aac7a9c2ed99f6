"""Weighted points: a weight of k counts as the point k times, in every score and error."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from tests.cards import parts_of
from tests.forecasts import forecast_of, labels_from
from utility_calibration import metrics as m
from utility_calibration.metrics.acting import largest_gain
from utility_calibration.metrics.resampling import resampled_weights
from utility_calibration.metrics.scores import checked

LOSSES = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.2], [0.1, 0.9]])
MEASURES = {
    "accuracy": m.accuracy,
    "brier": m.brier_score,
    "nll": m.negative_log_likelihood,
    "cwe": m.binned_class_wise_error,
    "cwe, prior": lambda *a, **k: m.binned_class_wise_error(*a, weights="prior", **k),
    "cwe, equal width": lambda *a, **k: m.binned_class_wise_error(*a, scheme="equal_width", **k),
    "tce": m.binned_top_class_error,
    "class-wise": m.ClassWise().calibration_errors,
    "top-K": m.TopK().calibration_errors,
    "decision": m.Decision(LOSSES).calibration_errors,
    "one utility": lambda p, y, sample_weight=None: m.utility_calibration(
        p[:, 0], y == 0, sample_weight=sample_weight
    ),
    "worst interval": lambda p, y, sample_weight=None: m.worst_interval(
        p[:, 0], y == 0, sample_weight=sample_weight
    ),
    "net benefit": lambda p, y, **k: m.Decision(LOSSES).net_benefit(
        p, y, thresholds=[0.2, 0.6], **k
    ),
    "mean loss": m.Decision(LOSSES).mean_loss,
    "acting gain": lambda p, y, sample_weight=None: [
        *largest_gain(p[:, 0], 1.0 * (y == 0), sample_weight).values()
    ],
    "constant": lambda p, y, **k: m.Decision(LOSSES).constant_losses(y, **k),
    "gaps": m.Decision(LOSSES).gaps,
    "two-bin": m.two_bin_error,
    "evaluated": lambda p, y, **k: m.TopK().evaluate(p, y, **k).gain.gain,
}


@pytest.mark.parametrize("kind", ["smooth", "dyadic", "one_hot"])
@pytest.mark.parametrize("name", MEASURES)
def test_whole_weights_are_repeated_rows(name, kind):
    p, y = forecast_of(kind, 90, 4, 3)
    measure = MEASURES[name]
    for times in np.random.default_rng(0).integers(0, 4, size=(5, 90)):
        repeated = measure(np.repeat(p, times, axis=0), np.repeat(y, times))
        np.testing.assert_allclose(measure(p, y, sample_weight=times), repeated, atol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_only_the_proportions_of_the_weights_count(name):
    p, y = forecast_of("smooth", 90, 4, 4)
    weights = np.random.default_rng(1).random(90)
    first, second = (MEASURES[name](p, y, sample_weight=scale * weights) for scale in (1, 7.3))
    np.testing.assert_allclose(first, second, atol=1e-12)
    assert not np.allclose(first, MEASURES[name](p, y), atol=1e-6)


@pytest.mark.parametrize("share", [0.7, 1 / 3])
def test_the_unit_of_weights_that_are_not_all_whole_does_not_matter(share):
    """Whole ones cut the bins as repeated rows would; of these some are whole, others are not."""
    p, y = forecast_of("smooth", 40, 3, 2)
    weights = np.tile([0.5, 0.3, 1.0, 0.9], 10)
    for bins in (5, 7):
        expected = m.binned_top_class_error(p, y, bins=bins, sample_weight=weights)
        found = m.binned_top_class_error(p, y, bins=bins, sample_weight=share * weights)
        assert found == pytest.approx(expected, abs=1e-12)


UTILITIES = {
    "class-wise": m.ClassWise(),
    "top-K": m.TopK(),
    "decision": m.Decision(LOSSES),
    "gain matrices": m.GainMatrix.sample_aligned(3, 4, seed=0),
}


def test_the_floors_and_curves_of_a_scorecard_are_those_of_repeated_rows():
    """Repeated rows have the number of one point, so that they draw the same label.

    Points of weight 0 have no number.
    """
    p, y = forecast_of("smooth", 60, 4, 3)
    times = np.random.default_rng(0).integers(0, 4, size=60)
    numbers = np.repeat(np.arange(60), times)
    few = {"utilities": 8, "floor_utilities": 4, "floor_repetitions": 10, "own": UTILITIES}
    weighted = m.scorecard(p, y, sample_weight=times, **few)
    points = np.repeat(np.arange((times > 0).sum()), times[times > 0])
    repeated = m.scorecard(p[numbers], y[numbers], points=points, **few)
    assert weighted.metrics == pytest.approx(repeated.metrics, abs=1e-12)
    for key, floor in parts_of(repeated, "floor").items():
        assert weighted[key].floor == pytest.approx(floor, abs=1e-12)
    for family, curve in repeated.curves.items():
        np.testing.assert_allclose(weighted.curves[family], curve, atol=1e-12)


def test_the_scorecard_resamples_weighted_points():
    """A resampling in which no point with a weight comes out moves nothing."""
    p, y = forecast_of("smooth", 60, 4, 3)
    few = {"utilities": 0, "floor_repetitions": 0, "bootstrap_repetitions": 50}
    few |= {"points": np.arange(60), "population": 60}
    counts = next(resampled_weights(np.arange(60), 60, 50, 0))
    for weights in (np.random.default_rng(0).random(60), 1.0 * (np.arange(60) < 2)):
        card = m.scorecard(p, y, sample_weight=weights, **few)
        drawn = [row if row.any() else weights for row in counts * weights]
        expected = [m.accuracy(p, y, sample_weight=row) for row in drawn]
        np.testing.assert_allclose(card["accuracy"].bootstrap_draws, expected, atol=1e-12)
    empty = ~(counts * weights).any(axis=1)
    assert empty.any()
    assert (card["u_topk"].bootstrap_draws[empty] == card.metrics["u_topk"]).all()


ALL_OF = {
    "scorecard": lambda *points, **options: (
        m.scorecard(*points, utilities=6, floor_repetitions=9, bootstrap_repetitions=9, **options)
        .frame()
        .to_numpy()
    ),
    "bounds": lambda *points, **options: m.ClassWise().evaluate(*points, **options).interval,
    "floor": lambda *points, **options: m.TopK().evaluate(*points, **options).floor,
    "bins": lambda *points, **options: m.binned_top_class_error(*points, bins=7, **options),
    "prior": lambda *points, **options: m.binned_class_wise_error(
        *points, bins=7, weights="prior", **options
    ),
}
EQUAL = [0.5, 1 / 3, 3.7, 1e-7, 1e20, 1]


@pytest.mark.parametrize("weight", EQUAL)
@pytest.mark.parametrize("name", ALL_OF)
def test_equal_weights_that_are_no_counts_are_none(name, weight):
    p, y = forecast_of("smooth", 93, 4, 4)
    expected = ALL_OF[name](p, y)
    np.testing.assert_array_equal(ALL_OF[name](p, y, sample_weight=np.full(93, weight)), expected)
    counts = np.arange(93) % 3 > 0  # of points that count all the same
    part = ALL_OF[name](p[counts], y[counts])
    found = ALL_OF[name](p, y, sample_weight=weight * counts)
    np.testing.assert_array_equal(found, part)


@pytest.mark.parametrize("name", ALL_OF)
def test_points_of_weight_0_are_no_points(name):
    p, y = forecast_of("smooth", 93, 4, 4)
    weights = np.random.default_rng(1).random(93) * (np.arange(93) % 3 > 0)
    of = weights > 0
    expected = ALL_OF[name](p[of], y[of], sample_weight=weights[of])
    np.testing.assert_array_equal(ALL_OF[name](p, y, sample_weight=weights), expected)


def test_points_of_weight_0_have_neither_ties_nor_zeros():
    p, y = np.array([[0.5, 0.5], [1.0, 0.0], [0.7, 0.3]]), [0, 1, 0]
    card = m.scorecard(p, y, sample_weight=[0, 0, 2.5], utilities=0, floor_repetitions=0)
    assert (card.tied_share, card.zero_likelihood) == (0, 0)


@pytest.mark.parametrize("utilities", UTILITIES.values(), ids=UTILITIES)
def test_equal_weights_change_no_certificate_and_unequal_ones_widen_it(utilities):
    p, y = forecast_of("smooth", 90, 4, 4)
    plain = utilities.evaluate(p, y).interval
    equal = utilities.evaluate(p, y, sample_weight=np.full(90, 3.0)).interval
    assert equal == pytest.approx(plain, abs=1e-6)  # multipliers are of single precision
    times = np.random.default_rng(0).integers(1, 5, size=90)
    weighted = utilities.evaluate(p, y, sample_weight=times).interval
    numbers = np.repeat(np.arange(90), times)
    repeated = utilities.evaluate(p[numbers], y[numbers]).interval
    assert weighted.upper > repeated.upper
    assert weighted.upper_finite > repeated.upper_finite > repeated.upper
    ranges = [utilities.spread(block).max() for block in utilities.blocks(*checked(p, y))]
    assert weighted.upper_finite == max(ranges)


@pytest.mark.parametrize("ratios", [(0.2, 5, 1, 1, 1), (0.25, 4, 4, 4)])
def test_weights_that_go_with_labels_are_told_and_raise_few_alarms(ratios):
    """Priors times weights of a survey: with labels drawn alone 14 to 47 % of alarms."""
    w, alarms, trials = np.array(ratios), 0, 60
    for seed in range(trials):
        random = np.random.default_rng([seed, 3])
        p = random.dirichlet(np.full(len(w), 0.7), 300)
        y = labels_from((p / w) / (p / w).sum(axis=1, keepdims=True), random)
        weights = w[y] * np.exp(0.3 * random.normal(size=300))
        with pytest.warns(UserWarning, match="sample_weight"):
            alarms += (
                m.ClassWise()
                .evaluate(p, y, repetitions=60, seed=seed, sample_weight=weights)
                .floor.p_value
                < 0.05
            )
    assert binom.sf(alarms - 1, trials, 0.08) > 0.01


def test_weights_that_do_not_go_with_labels_are_not_told():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(4), 300)
    y = labels_from(p, random)
    for weights in (random.gamma(0.5, size=300), 10 ** p[:, 0], np.where(p[:, 1] > 0.4, 9.0, 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            m.ClassWise().evaluate(p, y, sample_weight=weights)
