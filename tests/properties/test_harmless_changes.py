"""Changes of the input that mean nothing change no fit and no metric.

They are the unit of weights, rows repeated in place of weights, the order of classes and of rows,
and a class that never occurs.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from tests.calibrators.test_conventions import METHODS
from tests.cards import draws_of, parts_of
from tests.forecasts import labels_from
from utility_calibration import metrics as m

N, CLASSES = 200, 4
CALIBRATORS = {name: method for name, method in METHODS.items() if name != "Uncalibrated"}
WEIGHTED = {name: method for name, method in CALIBRATORS.items() if method.takes_weights}
UNSAMPLED = {
    "UtilityPatching": {"sampled": False},
    "LogitShiftPatching": {"sampled_count": 0},
    "from temperature": {"sampled_count": 0},
}
"""Arguments without which a fit draws utilities by the numbers of the classes."""
OF_ROW_ORDER = ("PooledScaling", "LogitShiftPatching", "from temperature")
"""Methods whose folds are drawn by the rows' numbers, so that another order gives other folds."""
FIT = {"rtol": 0, "atol": 1e-4}
"""Solvers end within 1e-9 nats of the optimum, where probabilities are off by the root of that."""
METRIC = {"rel": 1e-9, "abs": 1e-9}


@pytest.fixture(autouse=True)
def quiet():
    """Warnings of absent classes and of weights that go with labels are tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def points(absent=False):
    """Logits [N, C] with temperature 2, labels and weights; the last class may be absent."""
    random = np.random.default_rng(0)
    logits = 3 * random.normal(size=(N, CLASSES))
    logits[:, -1] -= 4.0 * absent
    seen = logits[:, : CLASSES - absent]
    labels = (seen / 2 + random.gumbel(size=seen.shape)).argmax(axis=1)
    return logits, labels, random.exponential(size=N)


def fitted(method, *given):
    return clone(method).fit(*given)


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("name", WEIGHTED)
def test_the_unit_of_weights_changes_no_fit(name, absent):
    """Weights that sum to one were taken for one point, with which penalties decide all."""
    logits, labels, weights = points(absent)
    p = fitted(WEIGHTED[name], logits, labels, weights).predict_proba(logits)
    for unit in (1 / weights.sum(), 1e6, 1e-90, 1e20):
        found = fitted(WEIGHTED[name], logits, labels, unit * weights).predict_proba(logits)
        np.testing.assert_allclose(found, p, **FIT)
    equal = fitted(WEIGHTED[name], logits, labels, np.full(N, 1 / N)).predict_proba(logits)
    plain = fitted(WEIGHTED[name], logits, labels).predict_proba(logits)
    np.testing.assert_allclose(equal, plain, **FIT)


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("name", [name for name in WEIGHTED if name not in OF_ROW_ORDER])
def test_whole_weights_are_repeated_rows_in_every_fit(name, absent):
    logits, labels, _ = points(absent)
    counts = np.random.default_rng(1).integers(0, 4, N)
    weighted = fitted(WEIGHTED[name], logits, labels, counts)
    repeated = fitted(WEIGHTED[name], np.repeat(logits, counts, axis=0), np.repeat(labels, counts))
    p = weighted.predict_proba(logits)
    np.testing.assert_allclose(repeated.predict_proba(logits), p, **FIT)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_the_order_of_classes_and_rows_changes_no_fit(name):
    logits, labels, _ = points()
    random = np.random.default_rng(2)
    order = random.permutation(CLASSES)
    method = clone(CALIBRATORS[name]).set_params(**UNSAMPLED.get(name, {}))
    p = fitted(method, logits, labels).predict_proba(logits)
    renamed = fitted(method, logits[:, order], np.argsort(order)[labels])
    np.testing.assert_allclose(renamed.predict_proba(logits[:, order]), p[:, order], **FIT)
    if name in OF_ROW_ORDER:
        return
    rows = random.permutation(N)
    moved = fitted(method, logits[rows], labels[rows])
    np.testing.assert_allclose(moved.predict_proba(logits), p, **FIT)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_class_that_never_occurs_leaves_the_others_proportions(name):
    logits, labels, _ = points(absent=True)
    wide = fitted(CALIBRATORS[name], logits, labels).predict_proba(logits)
    alone = fitted(CALIBRATORS[name], logits[:, :-1], labels).predict_proba(logits[:, :-1])
    shares = wide[:, :-1] / wide[:, :-1].sum(axis=1, keepdims=True)
    sums = alone.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, alone / np.where(sums > 0, sums, 1), **FIT)


FEW = {"utilities": 20, "floor_utilities": 8, "floor_repetitions": 20, "bootstrap_repetitions": 10}


def placed(array, offset):
    """The same numbers, `offset` bytes behind a multiple of 64."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = (offset - raw.ctypes.data) % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALIBRATORS)
def test_the_place_and_order_in_memory_change_no_bit_of_a_fit(name, dtype):
    logits, labels, _ = points()
    logits = logits.astype(dtype)
    expected = fitted(CALIBRATORS[name], logits, labels).predict_proba(logits)
    same = [np.asfortranarray(logits), placed(logits, 8), placed(logits, 52)]
    for given in same:
        answer = fitted(CALIBRATORS[name], given, labels).predict_proba(given)
        np.testing.assert_array_equal(answer, expected)


def numbers_of(card):
    """Every number of a scorecard by name."""
    found = dict(card.metrics)
    for key, floor in parts_of(card, "floor").items():
        found |= {f"{key} floor {name}": value for name, value in floor._asdict().items()}
    for key, bounds in (parts_of(card, "interval") | {"all": card.interval}).items():
        found |= {f"{key} {name}": value for name, value in bounds._asdict().items()}
    for key, worst in parts_of(card, "worst").items():
        found |= {f"{key} error": worst.error, f"{key} gain": card[key].gain.gain}
    for key, draws in draws_of(card).items():
        found[f"{key} drawn"] = float(draws.mean())
    return found


def forecast(kind):
    random = np.random.default_rng(3)
    p = random.dirichlet(np.full(CLASSES, 0.6), size=N)
    y = labels_from(p**1.5 / (p**1.5).sum(axis=1, keepdims=True), random)
    of_class = np.array([0.2, 1.3, 2.1, 0.7])[y]  # weights that are a function of the label
    return p, y, of_class if kind == "by label" else random.exponential(size=N)


@pytest.mark.parametrize("kind", ["by label", "of points"])
def test_the_unit_of_weights_changes_no_number_of_a_scorecard(kind):
    p, y, weights = forecast(kind)
    clusters = np.arange(N) // 4
    for more in ({}, {"clusters": clusters}):
        expected = numbers_of(m.scorecard(p, y, sample_weight=weights, **FEW, **more))
        for unit in (1 / weights.sum(), 1e-30, 7.3e5):
            card = m.scorecard(p, y, sample_weight=unit * weights, **FEW, **more)
            assert numbers_of(card) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", ["by label", "of points"])
def test_the_unit_of_weights_changes_no_number_of_a_stream(kind):
    p, y, weights = forecast(kind)

    def numbers(unit):
        stream = m.StreamingCalibration([m.ClassWise(), m.TopK()], CLASSES, buckets=60)
        for rows in np.array_split(np.arange(N), 3):
            stream.update(p[rows], y[rows], sample_weight=unit * weights[rows])
        result = stream.result()
        arrays = result.lower, result.upper, result.equal_width, result.equal_mass.ravel()
        scores = result.accuracy, result.brier, result.nll
        return np.concatenate(
            [*arrays, scores, result.noise_floor(), result.calibration_interval()]
        )

    expected = numbers(1.0)
    for unit in (1 / weights.sum(), 1e-30, 7.3e5):
        np.testing.assert_allclose(numbers(unit), expected, rtol=1e-9, atol=1e-12)


def test_whole_weights_are_repeated_rows_in_a_scorecard():
    p, y, _ = forecast("of points")
    counts = np.random.default_rng(1).integers(0, 4, N)
    rows = np.repeat(np.arange(N), counts)
    few = {"utilities": 20, "floor_utilities": 8, "floor_repetitions": 10}
    weighted = m.scorecard(p, y, sample_weight=counts, **few)
    points = np.repeat(np.arange((counts > 0).sum()), counts[counts > 0])
    repeated = m.scorecard(p[rows], y[rows], points=points, **few)
    assert weighted.metrics == pytest.approx(repeated.metrics, **METRIC)
    for key, floor in parts_of(repeated, "floor").items():
        assert weighted[key].floor == pytest.approx(floor, **METRIC)


def test_the_order_of_rows_and_classes_changes_no_metric():
    p, y, weights = forecast("of points")
    none = {"utilities": 0, "floor_repetitions": 0}
    expected = m.scorecard(p, y, sample_weight=weights, **none).metrics
    random = np.random.default_rng(2)
    rows, order = random.permutation(N), random.permutation(CLASSES)
    moved = m.scorecard(p[rows], y[rows], sample_weight=weights[rows], **none).metrics
    renamed = m.scorecard(p[:, order], np.argsort(order)[y], sample_weight=weights, **none).metrics
    assert moved == pytest.approx(expected, **METRIC)
    assert renamed == pytest.approx(expected, **METRIC)


def test_a_class_that_never_occurs_changes_no_metric_but_means_over_classes():
    p, y, weights = forecast("of points")
    none = {"utilities": 0, "floor_repetitions": 0}
    wide = np.column_stack([p, np.zeros(N)])
    expected = m.scorecard(p, y, sample_weight=weights, **none).metrics
    found = m.scorecard(wide, y, sample_weight=weights, **none).metrics
    for key in ("cwe_bin", "two_bin"):  # means over the classes
        expected[key] *= CLASSES / (CLASSES + 1) if key == "cwe_bin" else 1.0
    assert found == pytest.approx(expected, **METRIC)
