"""Pooled scaling against its objective in plain NumPy, and what it promises."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

from tests.calibrators.patching.patching_problems import over_confident
from utility_calibration.calibrators import TemperatureScaling
from utility_calibration.calibrators.pooled import maps, pool
from utility_calibration.calibrators.pooled.pool import PooledScaling, cross_fit, pool_weights
from utility_calibration.metrics import negative_log_likelihood

ROWS, CLASSES = 90, 4


@pytest.fixture
def log_q():
    logits, labels = over_confident(ROWS, CLASSES, seed=3)
    return log_softmax(logits.astype(float), axis=1), labels


def data_of(log_q, labels):
    return maps.Data(log_q, maps.Features.of(log_q), labels, np.ones(len(labels)))


def plain_features(row, c):
    """φ(c) as the page has it: hinges, bias of the rank, two slopes, the gap."""
    rank = sorted(range(len(row)), key=lambda j: (-row[j], j)).index(c)
    if rank >= maps.PLACES:
        return np.zeros(maps.COUNT)
    hinges = [max(row[c] - knot, 0) for knot in maps.KNOTS]
    biases = [float(rank == r) for r in range(maps.BIASES)]
    slopes = [row[c] * (rank == 0), row[c] * (rank == 1)]
    return np.array([*hinges, *biases, *slopes, (rank == 0) * np.diff(np.sort(row)[-2:])[0]])


def plain_objective(log_q, labels, with_matrix):
    """The objective as a function of the vector of all parameters."""
    n, classes = log_q.shape
    phi = np.array([[plain_features(row, c) for c in range(classes)] for row in log_q])

    def objective(vector):
        theta, shift, slopes = np.split(vector, [maps.COUNT, maps.COUNT + classes])
        matrix = slopes.reshape(classes, classes) if with_matrix else np.diag(slopes)
        scores = log_q @ matrix.T + shift + phi @ theta
        own = np.diag(matrix)
        off = (matrix**2).sum() - (own**2).sum()
        penalty = (theta**2).sum() + classes * (((own - 1) ** 2).sum() + (shift**2).sum() + 3 * off)
        return -log_softmax(scores, axis=1)[np.arange(n), labels].mean() + penalty / n

    return objective


@pytest.mark.parametrize("classes", [2, 4, 15])
def test_the_features_are_those_of_the_page(classes):
    rows = np.log(np.random.default_rng(0).dirichlet(np.full(classes, 0.3), 20))
    rows[:3, 1] = rows[:3, 0]  # a tie: by number
    features = maps.Features.of(rows)
    expected = [[plain_features(row, c) for c in range(classes)] for row in rows]
    theta = np.random.default_rng(1).normal(size=maps.COUNT)
    added = features.add_to(np.zeros((20, classes)), theta)
    np.testing.assert_allclose(added, np.array(expected) @ theta, atol=1e-12)


@pytest.mark.parametrize("with_matrix", [False, True])
def test_a_fit_is_the_minimum_of_its_objective(log_q, with_matrix):
    """The objective is strictly convex, so the minimum is where its gradient vanishes."""
    data = data_of(*log_q)
    begin = maps.identity(CLASSES, with_matrix)
    weight = 2 * maps.penalties(ROWS, CLASSES, with_matrix)
    point = maps.solve(data, begin, lambda gradients: gradients / (weight + 1)).point
    slope = approx_fprime(point, plain_objective(*log_q, with_matrix), 1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-5)


def test_the_preconditioner_is_the_inverse_hessian_at_the_identity(log_q):
    start = maps.identity(CLASSES, False)
    step = 1e-4 * np.eye(len(start))
    objective = plain_objective(*log_q, with_matrix=False)
    slopes = [[approx_fprime(start + k * s, objective, 1e-5) for s in step] for k in (1, -1)]
    hessian = (np.array(slopes[0]) - np.array(slopes[1])) / 2e-4
    applied = maps.preconditioner_n(maps.hessian_n(data_of(*log_q)))(hessian)
    np.testing.assert_allclose(applied, np.eye(len(start)), atol=0.02)


def test_the_map_of_scale_and_shift_is_the_best_one_of_its_kind(log_q):
    """The objective of (1 + s, a) is strictly convex, and its gradient vanishes."""
    data = data_of(*log_q)
    point = cross_fit(data, seed=0)[0][0]
    theta, shift, matrix = np.split(point, [maps.COUNT, maps.COUNT + CLASSES])
    slopes = matrix.reshape(CLASSES, CLASSES)
    assert not theta.any() and not (slopes - np.diag(slopes.diagonal())).any()
    np.testing.assert_allclose(slopes.diagonal(), slopes[0, 0], atol=1e-12)
    objective = plain_objective(*log_q, with_matrix=False)

    def of_few(few):
        return objective(np.concatenate([0 * theta, few[1:], np.full(CLASSES, few[0])]))

    best = np.array([slopes[0, 0], *shift])
    assert np.abs(shift).max() > 0.01
    np.testing.assert_allclose(approx_fprime(best, of_few, 1e-6), 0, atol=1e-5)


def test_a_pool_of_maps_is_one_map(log_q):
    data = data_of(*log_q)
    members, scores = cross_fit(data, seed=0)
    weights = pool_weights(scores, data.labels, data.weights)
    apart = [maps.MapPoint.of(m, CLASSES).scores(data.inputs, data.features) for m in members]
    pooled = maps.MapPoint.of(weights @ members, CLASSES).scores(data.inputs, data.features)
    np.testing.assert_allclose(pooled, np.einsum("m,mnc->nc", weights, apart), atol=1e-12)
    narrow = maps.identity(CLASSES, False) + 0.1
    wide = maps.MapPoint.of(maps.widened(narrow, CLASSES), CLASSES)
    np.testing.assert_allclose(
        wide.scores(data.inputs, data.features),
        maps.MapPoint.of(narrow, CLASSES).scores(data.inputs, data.features),
        atol=1e-12,
    )


def test_held_out_scores_do_not_know_their_own_labels(log_q):
    log_q, labels = log_q
    _, scores = cross_fit(data_of(log_q, labels), seed=0)
    changed = labels.copy()
    changed[7] = (labels[7] + 1) % CLASSES
    _, again = cross_fit(data_of(log_q, changed), seed=0)
    np.testing.assert_allclose(scores[:, 7], again[:, 7], rtol=0, atol=1e-4)
    assert np.abs(scores[1:] - again[1:]).max() > 1e-3


def test_where_a_temperature_is_enough_it_is_nearly_temperature_scaling():
    excess = 0.0
    for seed in range(6):
        logits, labels = over_confident(2000, CLASSES, seed)
        right = logits - 0.3 * np.arange(CLASSES, dtype=np.float32)  # twice as sharp, no offset
        nll = [
            negative_log_likelihood(c.fit(right[:300], labels[:300]).predict_proba(new), true)
            for new, true in [(right[300:], labels[300:])]
            for c in (PooledScaling(), TemperatureScaling())
        ]
        excess += nll[0] - nll[1]
    assert excess / 6 < 0.008  # three shifts of 300 points cost 3 / 600 nats


@pytest.mark.parametrize(
    ("rate", "n", "bound"), [(0.02, 500, 0.005), (0.1, 200, 0.012), (0.3, 100, 0.035)]
)
def test_few_points_mend_a_wrong_intercept(rate, n, bound):
    """Around the temperature alone, the pool was .011, .044 and .064 nats from the truth."""
    excess = 0.0
    for seed in range(6):
        generator = np.random.default_rng(seed)
        score = 2 * generator.normal(size=n + 4000)
        log_odds = np.log(rate / (1 - rate))
        p = 1 / (1 + np.exp(1 - score - log_odds))
        labels = (generator.random(n + 4000) < p).astype(int)
        logits = np.stack([0 * score, 1.3 * score + log_odds], axis=1)
        found = PooledScaling().fit(logits[:n], labels[:n]).predict_proba(logits[n:])
        truth = np.stack([1 - p, p], axis=1)[n:]
        excess += negative_log_likelihood(found, labels[n:])
        excess -= negative_log_likelihood(truth, labels[n:])
    assert excess / 6 < bound


def test_fewer_than_ten_points_have_the_temperature_as_the_only_member():
    logits, labels = over_confident(9, 2, seed=1)
    assert PooledScaling().fit(logits, labels).pool_ == pytest.approx([1.0], abs=0.01)


@pytest.mark.parametrize("classes", [2, CLASSES])
def test_a_weight_counts_like_so_many_points_of_the_same_fold(classes, monkeypatch):
    """Folds are of rows, so here a point and its copies are put into the same fold."""
    logits, labels = over_confident(150, classes, seed=2)
    counts = np.random.default_rng(0).integers(1, 4, 150)
    repeated = np.repeat(np.arange(150), counts)

    def fit(points, weights):
        fold = points % 5
        folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
        monkeypatch.setattr(pool, "folds_of", lambda *_: folds)
        return PooledScaling().fit(logits[points], labels[points], weights)

    weighted, plain = fit(np.arange(150), counts), fit(repeated, None)
    assert weighted.uniform_share_ == plain.uniform_share_
    np.testing.assert_allclose(weighted.pool_, plain.pool_, atol=1e-4)
    np.testing.assert_allclose(weighted.cross_fitted[repeated], plain.cross_fitted, atol=1e-5)
    p = weighted.predict_proba(logits)
    np.testing.assert_allclose(p, plain.predict_proba(logits), atol=1e-5)
    unweighted = fit(np.arange(150), None).predict_proba(logits)
    assert np.abs(p - unweighted).max() > 1e-3


@pytest.mark.parametrize("lightest", [1e-3, 1e-30, 1e-300])
def test_one_point_of_nearly_all_weight_leaves_a_forecast(lightest):
    """Four fifths of the points may then weigh nearly nothing."""
    logits, labels = over_confident(60, 3, seed=5)
    weights = np.full(60, lightest)
    weights[7] = 0.7
    p = PooledScaling().fit(logits, labels, weights).predict_proba(logits)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p.min() > 0
