"""The truth is rarely found worse than other forecasts where points have weights by class.

A point of class c weighs w_c, and labels are drawn from p_c / w_c, p = softmax(z). So p is
calibrated for the weighted points. Others forecast softmax(z / T). Nominal: 5 % of samples.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tests.forecasts import labels_from
from utility_calibration.metrics import TopK
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.resampling import NoiseFloor, bootstrap_draws, floor_draws
from utility_calibration.metrics.samples import sample_of
from utility_calibration.pipeline.scoring.inference import SIZE, against_best

WEIGHTS = np.array([0.1, 1.0, 10.0])
TRUTH = 1.0
DRAWS = 100  # of the labels, and of the points
LUCK = 0.01
"""A test of a true statement fails with this probability over seeds; the seeds here are fixed."""


def samples(trials: int, clusters: int, rows: int) -> Iterator[dict[str, Any]]:
    """Yield logits, and the arguments of `sample_of` but for the probabilities.

    A sample has `clusters` × `rows` points; the points of a cluster have the same z and label.
    """
    of_rows = np.repeat(np.arange(clusters), rows)
    for seed in range(trials):
        random = np.random.default_rng([seed, clusters, rows, len(WEIGHTS)])
        logits = 2 * random.normal(size=(clusters, len(WEIGHTS)))
        chances = softmax(logits) / WEIGHTS
        labels = labels_from(chances / chances.sum(axis=1, keepdims=True), random)[of_rows]
        yield {
            "logits": logits[of_rows],
            "labels": labels,
            "sample_weight": WEIGHTS[labels],
            "clusters": of_rows if rows > 1 else None,
        }


def is_found_worse(
    forecaster: float,
    temperatures: Sequence[float],
    logits: np.ndarray,
    labels: np.ndarray,
    seed: int,
    **points: Any,
) -> bool:
    """Whether the U_topK of softmax(z / `forecaster`), one of `temperatures`, is found worse."""
    utility = TopK()

    def measure(_, forecast, outcomes):
        return {"UC": utility.errors(forecast, outcomes).max(axis=1)}

    values, draws, floors = {}, {}, {}
    for temperature in temperatures:
        sample = sample_of(softmax(logits / temperature), labels, **points)
        error = float(utility.errors(sample.forecast, sample.outcomes).max())
        values[temperature] = [error]
        draws[temperature] = bootstrap_draws([sample], measure, DRAWS, seed)["UC"]
        floor = NoiseFloor.of(floor_draws([sample], measure, DRAWS, seed)["UC"], error)
        floors[temperature] = floor.p_value
    found = against_best(values, 0.3, draws, floors=floors, is_weighted=True)
    return not found[forecaster].not_worse


def share_worse(
    forecaster: float, temperatures: Sequence[float], trials: int, clusters: int, rows: int
) -> float:
    """The share of `trials` samples in which the forecaster is found worse."""
    drawn = enumerate(samples(trials, clusters, rows))
    found = [is_found_worse(forecaster, temperatures, seed=k, **points) for k, points in drawn]
    return float(np.mean(found))


DESIGNS = [
    pytest.param(400, 1, id="weights by class"),
    pytest.param(100, 3, id="clusters x weights by class"),
]
CLOSE = (TRUTH, 1.1, 0.9)
pytestmark = pytest.mark.filterwarnings("ignore:sample_weight")


@pytest.mark.parametrize(("clusters", "rows"), DESIGNS)
def test_the_truth_is_rarely_found_worse_under_weights(clusters, rows):
    trials = 40
    worse = round(trials * share_worse(TRUTH, CLOSE, trials, clusters, rows))
    assert binom.sf(worse - 1, trials, SIZE) > LUCK


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "rows"), DESIGNS)
def test_the_truth_is_found_worse_in_one_of_twenty_samples(clusters, rows):
    """Within two standard errors. With the rule for points without weights: .079 and .075."""
    trials = 400
    error = np.sqrt(SIZE * (1 - SIZE) / trials)
    assert share_worse(TRUTH, CLOSE, trials, clusters, rows) <= SIZE + 2 * error


def test_a_bad_forecast_is_found_worse_under_weights():
    """So the rates above are not bought by silence."""
    assert share_worse(1.6, (TRUTH, 1.6), 20, 1000, 1) > 0.7
