"""Blocks of rows on threads, and the same bits for any number of them."""

from threading import Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tests.cards import content_of
from utility_calibration import metrics as m
from utility_calibration.metrics.kernels import threads as module
from utility_calibration.metrics.kernels.threads import (
    blas_on_one_thread,
    one_thread,
    over_blocks,
    product,
    row_blocks,
)
from utility_calibration.metrics.kernels.uniforms import hashed_uniforms

POINTS, CLASSES = 16_000, 20
"""More than 2^18 probabilities, so that there are two blocks of rows."""
LOSSES = np.random.default_rng(0).random((CLASSES, 3))


@pytest.fixture(autouse=True)
def threads_before(monkeypatch):
    monkeypatch.setattr(module, "THREADS", [2])


def of_blas():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blocks_of_one_shape_cover_all_rows_and_come_back_in_order(threads, monkeypatch):
    monkeypatch.setattr(module, "THREADS", [threads])
    assert row_blocks(10, 3, 9) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert row_blocks(3, 100, 10) == [(0, 1), (1, 2), (2, 3)]
    assert over_blocks(lambda a, b: (a, b), row_blocks(10, 3, 9)) == row_blocks(10, 3, 9)


def test_blocks_inside_a_block_stay_on_its_thread():
    inside = over_blocks(lambda *_: module.get_threads(), [(0, 1), (1, 2)])
    assert (inside, module.get_threads()) == ([1, 1], 2)


def test_one_thread_lasts_as_long_as_its_block_and_binds_this_thread_alone():
    seen = []
    with pytest.raises(ValueError), one_thread():
        assert module.get_threads() == 1
        other = Thread(target=lambda: seen.append(module.get_threads()))
        other.start()
        other.join()
        raise ValueError
    assert seen == [2]
    with one_thread(wanted=False):
        assert module.get_threads() == 2
    assert module.get_threads() == 2


def test_blas_gets_its_threads_back_when_the_last_one_leaves():
    with threadpool_limits(2, user_api="blas"):
        if of_blas() != {2}:
            pytest.skip("this library of matrix products has one thread only")
        with blas_on_one_thread():
            with pytest.raises(ValueError), blas_on_one_thread():
                raise ValueError
            assert of_blas() == {1}
        assert of_blas() == {2}


@pytest.mark.parametrize("shape", [(5000, 7, 40), (40, 7, 5000), (3, 2000, 900), (1, 1, 1)])
def test_a_product_has_the_same_bits_for_any_number_of_threads(shape, monkeypatch):
    """Of OpenBLAS's threads, too, whose own products differ."""
    n, inner, columns = shape
    random = np.random.default_rng(0)
    left, right = random.normal(size=(n, inner)), random.normal(size=(columns, inner)).T
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(module, "THREADS", [threads])
        with threadpool_limits(threads, user_api="blas"):
            results.append(product(left, right).tobytes())
    assert len(set(results)) == 1
    np.testing.assert_allclose(np.frombuffer(results[0]).reshape(n, columns), left @ right)


def everything() -> list[bytes]:
    """What every metric and every class of utilities gives, so large that there are blocks."""
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(CLASSES, 0.4), size=POINTS)
    y, weights = random.integers(CLASSES, size=len(p)), random.random(len(p))
    users = [m.TopK(), m.ClassWise(), m.Decision(LOSSES), m.Similarity(np.eye(CLASSES))]
    users += [m.Linear.sample(70, CLASSES, 0), m.Rank.sample(70, CLASSES, 0)]
    users += [m.GainMatrix.sample_aligned(9, CLASSES, 0)]
    users += [m.GainMatrix.sample_misaligned(9, CLASSES, 0, 2)]
    users += [m.DiscountedCumulativeGain(), m.FunctionUtility(np.sqrt)]
    found = [each.calibration_errors(p, y, sample_weight=weights) for each in users]
    stream = m.StreamingCalibration([m.TopK(), m.Linear.sample(70, CLASSES, 0)], CLASSES)
    stream.update(p, y, sample_weight=weights)
    result = stream.result()
    found += [result.lower, result.upper, result.equal_mass, result.brier, result.nll]
    decision = m.Decision(LOSSES)
    found += [decision.decide(p), decision.mean_loss(p, y), decision.gaps(p, y)]
    found += [decision.net_benefit(p, y, thresholds=[0.2, 0.5]), m.two_bin_error(p, y)]
    few = {"utilities": 60, "floor_utilities": 60, "floor_repetitions": 3}
    card = m.scorecard(p, y, **few, bootstrap_repetitions=2, similarity=np.eye(CLASSES))
    found += content_of(card).values()
    few_points = {"sample_weight": weights[:3000], "clusters": np.arange(3000) // 3}
    small = m.scorecard(p[:3000], y[:3000], **few, **few_points)
    found += content_of(small).values()
    found.append(hashed_uniforms(np.arange(30), np.arange(POINTS)[:, None]))
    return [np.asarray(each).tobytes() for each in found]


@pytest.mark.filterwarnings("ignore:sample_weight")
def test_every_metric_has_the_same_bytes_on_one_and_two_threads(monkeypatch):
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(module, "THREADS", [threads])
        with threadpool_limits(threads, user_api="blas"):
            results.append(everything())
    assert results[0] == results[1] and len(results[0]) > 80
