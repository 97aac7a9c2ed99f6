"""What the metrics of one forecast share is computed once and changes no number."""

import numpy as np
import pytest
import torch

from metrics import measurement
from metrics.forecast import Forecast
from metrics.kernels import prefix_range, row_sort
from metrics.measurement import Options, kept_bytes, sampled_users
from metrics.samples import Sample, Samples
from metrics.utilities.payoffs import PayoffClass


@pytest.fixture
def forecast() -> Forecast:
    p = np.random.default_rng(3).dirichlet(np.full(5, 0.3), size=60)
    p[10:20] = p[0]  # tied points
    return Forecast(torch.from_numpy(p))


@pytest.fixture
def several(forecast):
    """Observed labels, drawn ones, and weights of resampled points."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(5, (60,), generator=generator)
    uniforms = torch.rand(4, 60, generator=generator, dtype=torch.float64)
    weights = torch.randint(3, (6, 60), generator=generator).double()
    return [
        forecast.outcomes(labels),
        forecast.redraw(uniforms),
        forecast.outcomes(labels, weights),
    ]


@pytest.mark.parametrize("largest", [measurement.LARGEST_SHARED, 0])
@pytest.mark.parametrize("family", ["linear", "rank"])
def test_users_that_outcomes_share_have_the_errors_that_they_have_alone(
    forecast, several, family, largest, monkeypatch
):
    monkeypatch.setattr(measurement, "LARGEST_SHARED", largest)
    users = sampled_users(forecast, Options(utilities=70))[family]
    for outcomes in [*several, *reversed(several)]:
        assert torch.equal(users.errors(outcomes), users.utilities.errors(forecast, outcomes))


@pytest.mark.parametrize(
    ("largest", "kept", "times"),
    [(measurement.LARGEST_SHARED, True, 1), (measurement.LARGEST_SHARED, False, 3), (0, True, 3)],
)
def test_predictions_are_made_and_sorted_once_where_they_can_be_kept(
    forecast, several, largest, kept, times, monkeypatch
):
    monkeypatch.setattr(measurement, "LARGEST_SHARED", largest)
    predicted, argsort = PayoffClass.predicted, row_sort.argsort_rows
    made, sorts = [], []

    def counted(*given):
        made.append(given)
        return predicted(*given)

    def sorted_here(*given):
        sorts.append(given)
        argsort(*given)

    monkeypatch.setattr(PayoffClass, "predicted", counted)
    monkeypatch.setattr(row_sort, "argsort_rows", sorted_here)
    monkeypatch.setattr(prefix_range, "argsort_rows", sorted_here)
    users = sampled_users(forecast, Options(utilities=30), kept)["linear"]
    for outcomes in several:
        users.errors(outcomes)
    assert len(made) == times
    assert len(sorts) == (1 if times == 1 else 2)  # one draw of the labels needs no sort


def test_what_users_keep_is_bounded():
    assert kept_bytes(15_000, 1500) <= measurement.LARGEST_SHARED
    assert kept_bytes(20_000, 1500) == 0


def test_batches_keep_no_predictions(forecast):
    """Those of all batches would be as many as those of the whole."""
    labels = torch.arange(60) % 5
    whole = Sample(forecast, labels, torch.arange(60))
    for size, shared in ((None, True), (20, False)):
        samples = Samples.of(whole, Options(utilities=9), size, 0)
        batches = samples.observed().batches
        assert {users.is_shared for one in batches for users in one.users.values()} == {shared}
