"""What the metrics of one forecast share is computed once and changes no number."""

import numpy as np
import pytest
import torch

from metrics import measurement
from metrics.forecast import Forecast
from metrics.measurement import Options, sampled_users
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


@pytest.mark.parametrize(("largest", "times"), [(measurement.LARGEST_SHARED, 1), (0, 3)])
def test_predictions_are_made_once_where_they_can_be_kept(
    forecast, several, largest, times, monkeypatch
):
    monkeypatch.setattr(measurement, "LARGEST_SHARED", largest)
    made, predicted = [], PayoffClass.predicted

    def counted(*given):
        made.append(given)
        return predicted(*given)

    monkeypatch.setattr(PayoffClass, "predicted", counted)
    users = sampled_users(forecast, Options(utilities=30))["linear"]
    for outcomes in several:
        users.errors(outcomes)
    assert len(made) == times
