"""Points that come in clusters: floors, certificates and the bootstrap take a cluster as one."""

import numpy as np
import pytest
from scipy.stats import binom

from tests.cards import parts_of
from tests.forecasts import forecast_of, labels_from
from utility_calibration import metrics as m
from utility_calibration.metrics.resampling import resampled_weights

ROWS = 8
"""Of a patient."""
FEW = {"utilities": 10, "floor_repetitions": 40, "bootstrap_repetitions": 12}


def patients(kind, count, classes, seed):
    """Calibrated forecasts and labels of `count` patients with `ROWS` rows each, and their numbers.

    same: all rows of a patient have nearly the same forecast, and the same label. sharp: so, too,
    but the classifier hardly errs. different: the same label, but each row its own forecast.
    independent: nothing in common.
    """
    random = np.random.default_rng([seed, count])
    clusters = np.repeat(np.arange(count), ROWS)
    if kind == "different":
        labels = random.integers(classes, size=count)[clusters]
        logits = 4 * np.eye(classes)[labels] + 2 * random.normal(size=(len(labels), classes))
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True), labels, clusters
    p = random.dirichlet(np.ones(classes), len(clusters) if kind == "independent" else count)
    if kind == "sharp":
        p = 0.001 * p + 0.999 * np.eye(classes)[random.integers(classes, size=count)]
    labels = labels_from(p, random)
    if kind != "independent":
        p = p[clusters] * np.exp(0.01 * random.normal(size=(len(clusters), 1)))
        labels = labels[clusters]
    return p / p.sum(axis=1, keepdims=True), labels, clusters


def test_clusters_with_weights_by_class_raise_few_alarms_where_each_class_occurs():
    """One class has ten times the weight, and few clusters; where it has none, that is told."""
    w, clusters, alarms, trials = np.array([0.1, 1, 10]), np.repeat(np.arange(60), 5), 0, 0
    for seed in range(40):
        random = np.random.default_rng([9, seed])
        p = random.dirichlet([0.7] * 3, 60)
        y = labels_from((p / w) / (p / w).sum(axis=1, keepdims=True), random)
        drawn = {"repetitions": 60, "seed": seed, "sample_weight": w[y][clusters]}
        if not (y == 2).any():
            with pytest.warns(UserWarning, match="sample_weight: 1"):
                m.ClassWise().evaluate(p[clusters], y[clusters], clusters=clusters, **drawn)
            continue
        trials += 1
        result = m.ClassWise().evaluate(p[clusters], y[clusters], clusters=clusters, **drawn)
        alarms += result.floor.p_value < 0.05
    assert trials > 25
    assert binom.sf(alarms - 1, trials, 0.06) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["same", "different", "sharp", "independent"])
@pytest.mark.parametrize(("count", "classes"), [(20, 3), (80, 10)])
def test_floors_and_bounds_hold_with_clusters(kind, count, classes):
    """At most 8 % false alarms, and bounds that hold in at least 93 %, up to the luck of trials."""
    trials, alarms, misses = 100, np.zeros(2), np.zeros(2)
    for seed in range(trials):
        p, y, clusters = patients(kind, count, classes, seed)
        for place, utilities in enumerate((m.ClassWise(), m.TopK())):
            floor = utilities.evaluate(p, y, repetitions=100, seed=seed, clusters=clusters).floor
            alarms[place] += floor.p_value < 0.05
            bounds = utilities.evaluate(p, y, seed=seed, clusters=clusters).interval
            misses[place] += bounds.lower > 0
    assert (binom.sf(alarms - 1, trials, 0.08) > 0.01).all(), alarms
    assert (binom.sf(misses - 1, trials, 0.07) > 0.01).all(), misses


@pytest.mark.slow
@pytest.mark.parametrize("utilities", [m.ClassWise(), m.TopK()])
def test_the_upper_bounds_hold_with_clusters(utilities):
    """A forecast that is overconfident by a fifth, of 40 patients; the truth is of 20,000."""

    def claimed(count, seed):
        p, y, clusters = patients("same", count, 3, seed)
        return p**1.4 / (p**1.4).sum(axis=1, keepdims=True), y, clusters

    p, y, _ = claimed(20_000, 1)
    truth = float(utilities.calibration_errors(p, y).max())
    held = np.zeros(2)
    for seed in range(100):
        p, y, clusters = claimed(40, seed)
        bounds = utilities.evaluate(p, y, seed=seed, clusters=clusters).interval
        held += np.array([bounds.upper, bounds.upper_finite]) >= truth
    assert (binom.cdf(held, 100, 0.93) > 0.01).all(), held


def test_clusters_of_one_point_are_points():
    p, y = forecast_of("smooth", 90, 4, 4)
    names = np.array([f"patient {number:02}" for number in range(90)])
    plain, found = (m.TopK().evaluate(p, y, clusters=c).interval for c in (None, names))
    assert found[2:] == pytest.approx(plain[2:])
    first, second = m.scorecard(p, y, **FEW), m.scorecard(p, y, clusters=names, **FEW)
    assert first.metrics == second.metrics
    for key, draws in parts_of(first, "bootstrap_draws").items():
        np.testing.assert_array_equal(draws, second[key].bootstrap_draws)


def test_the_bootstrap_draws_whole_clusters_and_every_floor_grows():
    p, y, clusters = patients("same", 30, 4, 0)
    card, plain = m.scorecard(p, y, clusters=clusters, **FEW), m.scorecard(p, y, **FEW)
    counts = next(resampled_weights(clusters, 30, 12, 0))
    for repetition, weights in enumerate(counts):
        assert len(np.unique(np.stack([weights, clusters]), axis=1).T) == 30
        again = m.scorecard(p, y, sample_weight=weights, utilities=10, floor_repetitions=0)
        for key in ("brier", "u_cwe", "u_topk", "tce_bin", "u_lin_median"):
            expected = again.metrics[key]
            assert card[key].bootstrap_draws[repetition] == pytest.approx(expected, abs=1e-12)
    for key, floor in parts_of(card, "floor").items():
        assert floor.q95 > plain[key].floor.q95
    assert card["u_cwe"].interval.upper > plain["u_cwe"].interval.upper
    in_splits = m.scorecard(p, y, clusters=clusters, population=30, **FEW)
    assert parts_of(in_splits, "floor") == parts_of(card, "floor")


def test_the_names_of_clusters_change_no_floor():
    random = np.random.default_rng(0)
    p, y, numbers = random.dirichlet(np.ones(3), 60), np.arange(60) % 3, np.arange(60) // 4
    names = np.array([f"z{k}" for k in random.permutation(15)])
    floors = [
        m.TopK().evaluate(p, y, clusters=clusters, repetitions=50).floor
        for clusters in (numbers, names[numbers], 100 - numbers)
    ]
    assert floors[0] == floors[1] == floors[2]
