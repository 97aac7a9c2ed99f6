"""How sure a difference is: between methods, between groups, and on data with a known truth."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from scipy.stats import binom

from tests.pipeline.reporting.conftest import decided
from utility_calibration.metrics import ClassWise, TopK
from utility_calibration.metrics.resampling import (
    NoiseFloor,
    bootstrap_draws,
    floor_draws,
)
from utility_calibration.metrics.samples import sample_of
from utility_calibration.pipeline.scoring.groups import (
    CANNOT_TELL,
    OUTCOMES,
    PLAIN,
    REPAIRS,
    largest_gap,
    repairs_of,
)
from utility_calibration.pipeline.scoring.inference import (
    RELATIVE_ERROR,
    against_best,
    corrected_half_width,
    fewest_positives,
    paired_difference,
    rejected,
    two_standard_errors,
)
from utility_calibration.pipeline.scoring.points import split_indices

N, SPLITS, TRIALS, SHARE = 400, 10, 300, 0.3
TESTS = [split_indices(N, split)[1] for split in range(SPLITS)]


def not_worse(values, draws=None, **how):
    found = against_best(values, SHARE, draws or {}, **how)
    return {method for method, one in found.items() if one.not_worse}


def test_the_set_of_the_best_holds_the_truly_best_and_leaves_out_the_bad() -> None:
    random = np.random.default_rng(2)
    kept, sizes = [], []
    for _ in range(TRIALS):
        shared = random.normal(size=N)
        losses = {
            name: excess + shared + 0.5 * random.normal(size=N)
            for name, excess in (("best", 0.0), ("near", 0.01), ("far", 0.05), ("bad", 0.6))
        }
        values = {name: [loss[test].mean() for test in TESTS] for name, loss in losses.items()}
        found = not_worse(values)
        kept.append("best" in found)
        sizes.append(len(found))
        assert "bad" not in found
    assert np.mean(kept) >= 0.95
    assert 1.5 < np.mean(sizes) < 3.01


def test_larger_is_better_and_few_splits_need_draws() -> None:
    scores = {"a": [0.9, 0.91, 0.92, 0.9, 0.91], "b": [0.5, 0.52, 0.51, 0.5, 0.52]}
    assert not_worse(scores, larger_is_better=True) == {"a"}
    one = {"a": [0.1], "b": [0.1 + 1e-9], "c": [0.2]}
    assert {found.not_worse for found in against_best(one, SHARE, {}).values()} == {None}
    noise = np.random.default_rng(0).normal(0, 0.05, size=200)
    draws = {"a": 0.1 + noise, "b": 0.1 + noise, "c": 0.2 + 1.1 * noise}
    found = against_best(one, SHARE, draws)
    assert {method for method, of in found.items() if of.not_worse} == {"a", "b"}
    assert found["c"].difference == pytest.approx(0.1)
    assert found["c"].difference_half_width == pytest.approx(
        1.96 * 0.1 * noise.std(ddof=1), rel=1e-4
    )


def test_a_small_error_is_worse_only_beyond_its_floor_or_with_one_sign():
    """Near zero resampled points rarely flip the noise, which all methods share."""
    noise = np.random.default_rng(0).normal(0.1, 0.005, size=200)
    one, draws = {"a": [0.1], "b": [0.12]}, {"a": noise, "b": noise + 0.02}
    draws["b"][:20] -= 0.03  # ten percent
    for p_value, expected in ((0.5, {"a", "b"}), (math.nan, {"a", "b"}), (0.01, {"a"})):
        assert not_worse(one, draws, floors={"a": 0.5, "b": p_value}) == expected
    assert not_worse(one, draws) == {"a"}
    draws["b"][:12] += 0.03
    floors = {"a": 0.5, "b": 0.5}
    assert not_worse(one, draws, floors=floors) == {"a"}  # 4 % of the differences
    assert not_worse(one, draws, floors=floors, is_weighted=True) == {"a", "b"}
    assert not_worse(one, draws, floors={"a": 0.5, "b": 0.5}) == {"a"}
    five = {"a": [0.1, 0.11, 0.1, 0.09, 0.1], "b": [0.2, 0.21, 0.2, 0.2, 0.19]}
    assert not_worse(five, floors={"a": 0.5, "b": 0.5}) == {"a"}


def errors_of(p, labels, tests, clusters, seed):
    """U_topK of each test part, its mean under resampled clusters, and the floor's p-value."""
    samples, values = [], []
    for test in tests:
        own = None if clusters is None else clusters[test]
        samples.append(
            sample_of(p[test], labels[test], clusters=own, points=test, population=len(p))
        )
        errors = TopK().errors(samples[-1].forecast, samples[-1].outcomes)
        values.append(float(errors.max()))

    def measure(_, forecast, outcomes):
        return {"UC": TopK().errors(forecast, outcomes).max(axis=1)}

    population = len(p) if clusters is None else int(clusters.max()) + 1
    draws = bootstrap_draws(samples, measure, 150, seed, population)["UC"]
    floor = NoiseFloor.of(floor_draws(samples, measure, 150, seed)["UC"], float(np.mean(values)))
    return values, draws, floor.p_value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "rows", "splits", "temperatures", "found"),
    [
        (200, 1, 1, (1, 1.1, 0.9), 0),
        (500, 1, 1, (1, 1.1, 0.9), 0),
        (200, 1, 1, (1, 1.02, 0.98, 1.04, 0.96, 1.06, 0.94, 1.08), 0),
        (300, 10, 1, (1, 1.1, 0.9), 0),
        (600, 1, 3, (1, 1.1, 0.9), 0),
        (500, 1, 1, (1, 1.15, 1.4), 0.75),
    ],
)
def test_the_truth_is_rarely_found_worse_in_few_splits(n, rows, splits, temperatures, found):
    """Without the floors 6 to 16 % of cases; `found`: power for the last temperature, at least."""
    trials, worse = 150, np.zeros(len(temperatures))
    tests = (
        [split_indices(n, split)[1] for split in range(splits)] if splits > 1 else [np.arange(n)]
    )
    of_rows = np.repeat(np.arange(n // rows), rows)
    for seed in range(trials):
        random = np.random.default_rng([seed, n, rows])
        logits = 2 * random.normal(size=(n // rows, 4))[of_rows]
        uniforms = random.random((n // rows, 1))[of_rows]
        labels = (softmax(logits, axis=1).cumsum(axis=1) < uniforms).sum(axis=1).clip(max=3)
        given = labels, tests, of_rows if rows > 1 else None, seed
        scored = [errors_of(softmax(logits / t, axis=1), *given) for t in temperatures]
        values, draws, floors = (
            dict(zip(temperatures, column, strict=True)) for column in zip(*scored, strict=True)
        )
        best = not_worse(values, draws, floors=floors)
        worse += [t not in best for t in temperatures]
    assert binom.sf(worse[0] - 1, trials, 0.06) > 0.01, worse
    assert worse[-1] >= found * trials


def test_intervals_and_differences_by_hand() -> None:
    """Over splits Student's t with the corrected variance, over few splits the draws."""
    values = [3.0, 4.0, 5.0]  # std 1, so the variance is 1/3 + 3/7
    expected = stats.t.ppf(0.975, 2) * math.sqrt(1 / 3 + 3 / 7)
    assert corrected_half_width(values, 0.3) == pytest.approx(expected)
    assert math.isnan(corrected_half_width([1.0], SHARE))
    assert two_standard_errors(values) == pytest.approx(2 / math.sqrt(3))
    gaps = np.array([1.0, 2.0, 3.0, 2.0, 2.0])
    over_splits = paired_difference(gaps, 0 * gaps, 0.3, draws=[5.0, 9.0], other_draws=[0.0, 0.0])
    assert over_splits.error == pytest.approx(math.sqrt(0.5 * (1 / 5 + 3 / 7)))
    over_points = paired_difference([3.0], [1.0], 0.5, draws=[5.0, 7.0], other_draws=[1.0, 1.0])
    numbers = 2.0, math.sqrt(2), 1.959964 * math.sqrt(2), 0.0786496
    assert over_points == pytest.approx(numbers, abs=1e-5)
    same = paired_difference([3.0], [3.0], 0.5, draws=[5.0, 7.0], other_draws=[5.0, 7.0])
    assert same == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("loss", "draws"), [(math.inf, [1.0, 2.0]), (3.0, None), (3.0, [1.0]), (3.0, [3.0, 3.0])]
)
def test_where_nothing_tells_the_error_nothing_is_rejected(loss, draws):
    others = None if draws is None else [0.0] * len(draws)
    found = paired_difference([loss], [0.0], 0.5, draws, others)
    assert math.isnan(found.p_value)
    assert rejected({"a": found.p_value, "b": 0.02, "c": 0.04}) == set()
    assert rejected({"a": found.p_value, "b": 0.01, "c": 0.02}) == {"b", "c"}


def row(mean, floor, half_width):
    numbers = {"mean": mean, "floor_mean": floor, "half_width": half_width}
    return decided({"u_cwe": {"m": numbers}}).rows["m", "u_cwe"]


def test_a_gap_between_groups_is_beyond_chance_and_its_p_value_counts_every_pair():
    gap = largest_gap({"large": row(0.02, 0.01, 0.005), "small": row(0.09, 0.085, 0.005)})
    assert (gap.larger, gap.smaller, gap.values) == ("large", "small", (0.02, 0.09))
    assert gap.difference == pytest.approx(0.005)
    two = {"a": row(0.05, 0.01, 0.0196), "b": row(0.01, 0.01, 0.0196)}
    # 0.04 apart with standard errors of 0.01 each: z = 2.83
    gap = largest_gap(two)
    assert gap.p_value == pytest.approx(0.00468, abs=2e-5)
    three = two | {"c": row(0.03, 0.01, 0.0196)}
    assert largest_gap(three).p_value == pytest.approx(3 * gap.p_value)
    assert largest_gap({"a": row(0.1, 0, np.nan), "b": row(0.2, 0, 0.1)}).p_value is None


@pytest.mark.parametrize("before", [True, False, None])
@pytest.mark.parametrize("after", [True, False, None])
def test_a_gap_is_closed_where_the_error_comes_down_to_noise(before, after):
    plain = {"mean": 0.2, "beyond_floor": before}
    patched = {"mean": 0.1, "floor_q95": 0.05, "beyond_floor": after}
    own = decided({"u_cwe": {PLAIN[1]: plain, REPAIRS: patched}})
    (repair,) = repairs_of({"north": own})
    assert (repair.plain, repair.errors, repair.floor) == (PLAIN[1], (0.2, 0.1), 0.05)
    assert repair.group == "north"
    assert (repair.outcome == CANNOT_TELL) == (None in (before, after))
    assert (repair.outcome == OUTCOMES[True, False]) == ((before, after) == (True, False))
    assert not repairs_of({"north": decided({"u_cwe": {PLAIN[1]: plain}})})


def test_the_rule_of_a_rare_class_of_two():
    """Its floor is 2.24 √k positives, the 95 % quantile of a Brownian motion's range."""
    assert fewest_positives(20_000, 2.24 * math.sqrt(16) / 20_000) > 16
    assert fewest_positives(20_000, 2.24 * math.sqrt(40) / 20_000) <= 40
    assert fewest_positives(20_000, 0.01) > fewest_positives(20_000, 0.005) > 100 / RELATIVE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(("positives", "is_enough"), [(12, False), (60, True)])
def test_with_enough_positives_an_error_of_half_the_frequency_is_found(positives, is_enough):
    """One class claims 1.5 times what occurs; `positives` are those in expectation."""
    n, found, enough = 4000, 0, 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        true = np.minimum(positives / n * random.gamma(2, 0.5, size=n), 0.5)
        labels = (random.random(n) < true).astype(int)
        claimed = np.stack([1 - 1.5 * true, 1.5 * true], axis=1)
        floor = ClassWise().evaluate(claimed, labels, repetitions=100, seed=seed).floor
        found += floor.p_value < 0.05
        enough += labels.sum() >= fewest_positives(n, floor.q95)
    assert (found >= 70) == (enough >= 50) == is_enough
