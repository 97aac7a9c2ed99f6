"""Evidence against calibration that may be looked at at any time."""

import io
import math

import numpy as np
import pytest

from utility_calibration import metrics as m
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.bets import BETS


def stream(n, seed, temperature=1.0, classes=4):
    """Points of a forecast that is calibrated at temperature 1."""
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(n, classes))
    y = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    p = np.exp(logits / temperature)
    return p / p.sum(axis=1, keepdims=True), y


def nothing(utilities=None):
    return m.StreamingCalibration(utilities or [m.ClassWise(), m.TopK()], classes=4)


def seen(p, y, utilities=None, batches=1):
    streaming = m.StreamingCalibration(utilities or [m.ClassWise(), m.TopK()], p.shape[1])
    for rows in np.array_split(np.arange(len(y)), batches):
        streaming.update(p[rows], y[rows])
    return streaming


def wealth_by_definition(v, u):
    """Return the mean of Π (1 + λ (u - v) 1{v ∈ I}) over λ and dyadic I, for v in [0, 1]."""
    of_bets = []
    for depth in range(4):
        for j in range(2**depth):
            last = j + 1 == 2**depth
            inside = (v >= j / 2**depth) & ((v < (j + 1) / 2**depth) | last)
            of_bets += [np.prod(1 + bet * (u - v) * inside) for bet in BETS]
    return np.mean(of_bets)


def test_the_evidence_is_its_definition():
    p, y = stream(600, 0, temperature=0.8)
    vs = [p[:, k] for k in range(4)]
    us = [1.0 * (y == k) for k in range(4)]
    expected = np.array([wealth_by_definition(v, u) for v, u in zip(vs, us)])
    found = seen(p, y, m.ClassWise(), batches=3).evidence()
    assert found.log_of_utilities == pytest.approx(np.log(expected), abs=1e-9)
    assert found.now == pytest.approx(expected.mean(), rel=1e-9)
    assert found.largest >= found.now


def test_bets_go_both_ways_alike_and_never_lose_all():
    assert BETS.tolist() == (-BETS[::-1]).tolist() and len(set(BETS)) == len(BETS)
    sizes = np.abs(BETS)
    assert sizes.min() > 0 and sizes.max() < 1


class Twice(m.ClassWise):
    """Class-wise utilities times 2, minus 5: another unit for the same evidence."""

    def blocks(self, forecast, outcomes):
        for block in super().blocks(forecast, outcomes):
            changed = {"predicted": 2 * block.predicted - 5, "payoffs": 2 * block.payoffs - 5}
            yield block._replace(**changed)

    def bounds(self, classes):
        return 2 * super().bounds(classes) - 5


def test_the_unit_of_a_utility_changes_nothing_but_the_unit():
    p, y = stream(500, 1, temperature=0.8)
    plain, other = (seen(p, y, utility).evidence() for utility in (m.ClassWise(), Twice()))
    assert other.log_now == pytest.approx(plain.log_now, abs=1e-9)
    assert (other.low, other.high) == pytest.approx((2 * plain.low - 5, 2 * plain.high - 5))


def test_parts_that_are_merged_are_the_whole():
    p, y = stream(900, 2, temperature=0.9)
    whole, merged = seen(p, y), seen(p[:300], y[:300])
    for rows in (slice(300, 600), slice(600, 900)):
        part, file = seen(p[rows], y[rows]), io.BytesIO()
        part.save(file)
        file.seek(0)
        merged.merge(nothing().load(file))
    assert merged.evidence().log_now == pytest.approx(whole.evidence().log_now, abs=1e-9)


def test_a_saved_state_goes_on_where_it_was(tmp_path):
    p, y = stream(4000, 3, temperature=0.7)
    whole, night = seen(p, y, batches=4), nothing()
    for rows in np.array_split(np.arange(4000), 4):
        night.update(p[rows], y[rows])
        night.save(tmp_path / "state.npz")
        night = nothing().load(tmp_path / "state.npz")
    assert night.evidence().log_now == whole.evidence().log_now
    assert night.evidence().log_largest == whole.evidence().log_largest
    assert night.evidence().is_alarm()
    back = night.evidence().log_largest
    night.update(*stream(20_000, 4, temperature=1.6))  # it may fall; the alarm stays
    assert night.evidence().log_largest >= back


def test_calibrated_streams_rarely_alarm_at_any_look_and_others_do():
    alarms = sum(seen(*stream(2000, 100 + k), batches=40).evidence().is_alarm() for k in range(60))
    assert alarms <= 3
    for temperature in (0.7, 1.5):
        found = seen(*stream(4000, 5, temperature), batches=10).evidence()
        assert found.is_alarm()
    p, y = stream(20_000, 6)
    p[:, 0] *= np.where(p[:, 0] > 0.5, 0.6, 1)  # more is realized than predicted
    p[:, 1:] *= ((1 - p[:, 0]) / p[:, 1:].sum(axis=1))[:, None]
    found = seen(p, y, m.ClassWise(), batches=5).evidence()
    assert (found.utility, found.sign) == (0, 1)


def test_before_the_first_point_there_is_no_evidence():
    found = m.StreamingCalibration(m.TopK(), 3).evidence()
    assert (found.now, found.largest, found.sign, found.is_alarm()) == (1, 1, 0, False)


def test_the_largest_float_is_enough_for_strong_evidence():
    n = 20_000
    p = np.column_stack([np.full(n, 0.99), np.full(n, 0.01)])
    found = seen(p, np.ones(n, int)).evidence()
    assert math.isfinite(found.now)
    assert found.log_now > 1000


def test_weights_that_differ_and_counts_above_1_are_refused():
    p, y = stream(100, 7)
    streaming = m.StreamingCalibration(m.TopK(), 4)
    streaming.update(p, y, sample_weight=np.arange(100) % 2)
    half = seen(p[1::2], y[1::2], m.TopK())
    assert streaming.evidence().log_now == pytest.approx(half.evidence().log_now, abs=1e-12)
    streaming.update(p, y, sample_weight=np.full(100, 2.0))
    with pytest.raises(InputError) as refused:
        streaming.evidence()
    assert refused.value.field == "sample_weight"
    streaming = m.StreamingCalibration(m.TopK(), 4)
    streaming.update(p[:50], y[:50], sample_weight=np.full(50, 0.5))
    streaming.update(p[50:], y[50:], sample_weight=np.full(50, 0.5))
    whole = seen(p, y, m.TopK())
    assert streaming.evidence().log_now == pytest.approx(whole.evidence().log_now, abs=1e-12)
    streaming.update(p, y, sample_weight=np.full(100, 0.7))
    with pytest.raises(InputError) as refused:
        streaming.evidence()
    assert refused.value.field == "sample_weight"
