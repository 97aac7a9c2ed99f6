"""Gain matrices at sizes where the users are worked on in parts and most classes are possible."""

import pytest
import torch

from metrics import GainMatrix
from metrics.forecast import Forecast
from metrics.utilities import gain_matrix

CLASSES = 70


@pytest.fixture
def flat_and_sharp():
    """Rows without a class that stands out, where the bounds leave all, between confident ones.

    No row is quite flat: classes of equal expected gain would be told apart by rounding, which is
    another's on another processor.
    """
    generator = torch.Generator().manual_seed(0)
    sharpness = torch.tensor([0.001, 0.1, 0.3, 1.0, 4.0]).repeat(80)[:, None]
    logits = torch.randn(400, CLASSES, generator=generator, dtype=torch.float64) * sharpness
    labels = torch.randint(CLASSES, (2, 400), generator=generator)
    forecast = Forecast(logits.softmax(dim=1))
    return forecast, forecast.outcomes(labels)


def users_of(family, count=150):
    if family == "aligned":
        return GainMatrix.sample_aligned(count, CLASSES, 1)
    return GainMatrix.sample_misaligned(count, CLASSES, 1, subsets=4)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("family", ["aligned", "misaligned"])
def test_parts_equal_one_product_over_all_classes(
    family, threads, flat_and_sharp, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gain_matrix, "rows_per_block", lambda n: 7)
    monkeypatch.setattr(gain_matrix, "BLOCK_BYTES", 3 * 8 * 2 * 400)
    forecast, outcomes = flat_and_sharp
    users, usual = users_of(family), torch.get_num_threads()
    gains = torch.stack([users.matrix(k) for k in range(150)])
    expected = torch.einsum("ni,mij->nmj", forecast.probabilities, gains)
    torch.set_num_threads(threads)
    try:
        predicted, chosen = users.choose(forecast)
        blocks = list(users.blocks(forecast, outcomes))
        errors = users.errors(forecast, outcomes)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(usual)
    torch.testing.assert_close(predicted, expected.max(dim=2).values, rtol=0, atol=1e-14)
    picked = expected.gather(2, chosen[:, :, None])[:, :, 0]
    torch.testing.assert_close(picked, predicted, rtol=0, atol=1e-14)
    assert max(len(block.predicted) for block in blocks) == 3
    for draw in range(2):
        realized = torch.cat([block.payoffs[:, block.codes[draw]] for block in blocks]).T
        own = gains[torch.arange(150), outcomes.labels[draw][:, None], chosen]
        assert torch.equal(realized, own)
    torch.testing.assert_close(
        errors, GainMatrix(gains).errors(forecast, outcomes), rtol=0, atol=1e-13
    )
