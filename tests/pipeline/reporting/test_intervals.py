"""Size and coverage on data with a known truth: enough repetitions to tell .95 from .85."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from metrics import NoiseFloor, TopK
from metrics.forecast import Forecast
from metrics.resampling import redrawn_outcomes
from pipeline.reporting.intervals import (
    corrected_half_width,
    not_worse_than_best,
    two_standard_errors,
)
from pipeline.scoring.splits import split_indices

N, SPLITS, TRIALS, SHARE = 400, 10, 300, 0.3
TESTS = [split_indices(N, split)[1] for split in range(SPLITS)]


def test_a_calibrated_method_is_beyond_its_floor_in_one_of_twenty_cases() -> None:
    """The mean of the splits' own 95 % quantiles, in its place, would hardly ever be exceeded."""
    utilities = TopK()
    random = np.random.default_rng(1)
    p = torch.from_numpy(random.dirichlet(np.full(5, 0.5), size=N))
    uniforms = torch.from_numpy(random.random((TRIALS, N)))
    labels = Forecast(p).redraw(uniforms).labels
    observed, floors = [], []
    for test in TESTS:
        forecast, points = Forecast(p[test]), torch.from_numpy(test)
        seen = utilities.errors(forecast, forecast.outcomes(labels[:, points].contiguous()))
        (drawn,) = redrawn_outcomes(forecast, points, 400, seed=0, size=len(test))
        observed.append(seen.max(dim=1).values.numpy())
        floors.append(utilities.errors(forecast, drawn).max(dim=1).values.numpy())
    means = np.mean(observed, axis=0)
    p_values = [NoiseFloor.of(np.mean(floors, axis=0), mean).p_value for mean in means]
    assert 0.02 <= np.mean(np.array(p_values) <= 0.05) <= 0.09
    of_one_split = np.mean([np.quantile(floor, 0.95) for floor in floors])
    assert np.mean(means > of_one_split) <= 0.01


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
        found = not_worse_than_best(values, SHARE)
        kept.append("best" in found)
        sizes.append(len(found))
        assert "bad" not in found
    assert np.mean(kept) >= 0.95
    assert 1.5 < np.mean(sizes) < 3.01


def test_larger_is_better_and_infinite_and_single_values() -> None:
    scores = {"a": [0.9, 0.91, 0.92], "b": [0.5, 0.52, 0.51], "c": [math.inf, 0.1, 0.1]}
    assert not_worse_than_best(scores, SHARE, larger_is_better=True) == {"a"}
    assert not_worse_than_best({"a": [0.1], "b": [0.1], "c": [0.2]}, SHARE) == {"a", "b"}
    assert not_worse_than_best({"a": [math.inf]}, SHARE) == set()
    assert math.isnan(corrected_half_width([1.0], SHARE))


def test_the_corrected_interval_by_hand() -> None:
    values = [3.0, 4.0, 5.0]  # std 1, so the variance is 1/3 + 3/7
    expected = stats.t.ppf(0.975, 2) * math.sqrt(1 / 3 + 3 / 7)
    assert corrected_half_width(values, 0.3) == pytest.approx(expected)
    assert two_standard_errors(values) == pytest.approx(2 / math.sqrt(3))
