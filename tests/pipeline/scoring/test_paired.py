"""A method that is as good as another is called worse in 5 % of samples, a worse one in most."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from metrics import TopK
from metrics.resampling import resampled_weights
from metrics.scores import checked
from pipeline.scoring.inference import Difference, paired_difference, rejected

N = 400
WEIGHTS = next(resampled_weights(torch.arange(N), N, 60, 0))


def softmax(logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def p_value(logits, others, labels):
    """Of the hypothesis that the first method's U_topK is not larger, in one given split."""
    values, draws = [], []
    for method in (logits, others):
        forecast, outcomes = checked(softmax(method), labels)
        values.append([float(TopK().errors(forecast, outcomes).max())])
        resampled = forecast.outcomes(outcomes.labels, WEIGHTS)
        draws.append(TopK().errors(forecast, resampled).max(dim=1).values.numpy())
    return paired_difference(*values, 0.5, *draws).p_value


def test_the_test_over_points_has_its_size_and_finds_an_overconfident_forecast():
    """Two methods each spoil one half of the classes, so neither is worse; a third spoils both."""
    by_chance, found = [], []
    for seed in range(60):
        random = np.random.default_rng(seed)
        logits = 2 * random.normal(size=(N, 4))
        labels = (softmax(logits).cumsum(axis=1) < random.random((N, 1))).sum(axis=1).clip(max=3)
        left, right = logits * [1.5, 1.5, 1, 1], logits * [1, 1, 1.5, 1.5]
        by_chance += [p_value(left, right, labels), p_value(right, left, labels)]
        found.append(p_value(1.5 * logits, logits, labels))
    assert np.mean(np.less(by_chance, 0.05)) < 0.1
    assert np.mean(np.less(found, 0.05)) > 0.8


def test_ten_splits_have_students_t_and_few_splits_the_draws():
    gaps = np.array([1.0, 2.0, 3.0, 2.0, 2.0])
    over_splits = paired_difference(gaps, 0 * gaps, 0.3, draws=[5.0, 9.0], other_draws=[0.0, 0.0])
    assert over_splits.error == pytest.approx(math.sqrt(0.5 * (1 / 5 + 3 / 7)))
    over_points = paired_difference([3.0], [1.0], 0.5, draws=[5.0, 7.0], other_draws=[1.0, 1.0])
    expected = 2.0, math.sqrt(2), 1.959964 * math.sqrt(2), 0.0786496
    assert over_points == pytest.approx(expected, abs=1e-5)
    same = paired_difference([3.0], [3.0], 0.5, draws=[5.0, 7.0], other_draws=[5.0, 7.0])
    assert same == Difference(0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("loss", "draws"), [(math.inf, [1.0, 2.0]), (3.0, None), (3.0, [1.0]), (3.0, [3.0, 3.0])]
)
def test_where_nothing_tells_the_error_nothing_is_rejected(loss, draws):
    others = None if draws is None else [0.0] * len(draws)
    found = paired_difference([loss], [0.0], 0.5, draws, others)
    assert math.isnan(found.p_value)
    assert rejected({"a": found.p_value, "b": 0.02, "c": 0.04}) == set()
    assert rejected({"a": found.p_value, "b": 0.01, "c": 0.02}) == {"b", "c"}
