"""Patching against gain-matrix users, against the update written out with NumPy."""

import numpy as np
import pytest
import torch

from calibrators.patching.gain_patching import GainPatching
from metrics import GainMatrix, brier_score, utility_calibration
from metrics.utility_calibration import worst_interval

CLASSES = 6


@pytest.fixture
def overconfident():
    """Probabilities twice as sharp as the distribution of the labels."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(500, CLASSES))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (random.random((500, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=CLASSES - 1)
    sharp = np.exp(2.5 * logits)
    return sharp / sharp.sum(axis=1, keepdims=True), labels


def users_of(family, count=1, seed=3):
    if family == "aligned":
        return GainMatrix.sample_aligned(count, CLASSES, seed)
    return GainMatrix.sample_misaligned(count, CLASSES, seed, subsets=2)


def on_simplex(point):
    """Euclidean projection by the textbook's sort."""
    ordered = np.sort(point)[::-1]
    tau = (ordered.cumsum() - 1) / np.arange(1, len(point) + 1)
    return np.maximum(point - tau[ordered > tau][-1], 0)


def patching_of(forecast, **options):
    return GainPatching(*(torch.from_numpy(part) for part in forecast), **options)


@pytest.mark.parametrize("family", ["aligned", "misaligned"])
def test_one_patch_is_the_masked_projected_update(family, overconfident):
    p, labels = overconfident
    user = users_of(family)
    gains = user.matrix(0).numpy()
    chosen = (p @ gains).argmax(axis=1)
    predicted, realized = (p @ gains).max(axis=1), gains[labels, chosen]
    worst = worst_interval(predicted, realized)
    patching = patching_of(overconfident)
    patch = patching.patch(user)
    assert (patch.low, patch.high) == pytest.approx((worst.low, worst.high), abs=1e-14)
    assert patch.error == pytest.approx(utility_calibration(predicted, realized), abs=1e-14)
    assert np.sign(patch.step) == worst.sign
    inside = (predicted >= worst.low - 1e-14) & (predicted <= worst.high + 1e-14)
    assert patch.points == inside.sum()
    expected = p.copy()
    for i in np.flatnonzero(inside):
        expected[i] = on_simplex(p[i] + patch.step * gains[:, chosen[i]])
    moved = patching.probabilities.numpy()
    np.testing.assert_allclose(moved, expected, atol=1e-13)
    change = brier_score(expected, labels) - brier_score(p, labels)
    assert patch.brier_change == pytest.approx(change, abs=1e-12)
    assert change < 0


@pytest.mark.parametrize("family", ["aligned", "misaligned"])
def test_the_brier_score_never_rises_and_the_worst_error_falls(family, overconfident):
    patching = patching_of(overconfident)
    first = patching.errors(users_of(family, 64, 99)).max()
    brier = patching.brier_score()
    for iteration in range(12):
        users = users_of(family, 64, iteration)
        worst = int(patching.errors(users).argmax())
        patch = patching.patch(users.only(worst))
        assert patch is None or patch.brier_change <= 0
        assert patching.brier_score() <= brier + 1e-15
        brier = patching.brier_score()
        torch.testing.assert_close(
            patching.probabilities.sum(dim=1), torch.ones(500, dtype=torch.float64)
        )
    assert patching.errors(users_of(family, 64, 99)).max() < first / 2


def test_plain_torch_moves_alike(overconfident):
    compiled, plain = patching_of(overconfident), patching_of(overconfident)
    plain.on_cpu = False
    for seed in range(4):
        ours, theirs = (one.patch(users_of("aligned", seed=seed)) for one in (compiled, plain))
        assert ours == pytest.approx(theirs, abs=1e-12)
    torch.testing.assert_close(compiled.probabilities, plain.probabilities, rtol=0, atol=1e-12)


def test_nothing_to_patch_where_prediction_and_outcome_agree():
    labels = torch.arange(CLASSES).repeat(5)
    patching = GainPatching(torch.eye(CLASSES, dtype=torch.float64)[labels], labels)
    assert patching.patch(users_of("aligned")) is None
    assert float(patching.errors(users_of("aligned", 8)).max()) == 0


def test_the_noise_of_labels_drawn_from_the_forecast(overconfident):
    users = users_of("misaligned", 20)
    noise = patching_of(overconfident).noise_errors(users, 12, seed=0)
    assert noise.shape == (12, 20)
    assert torch.equal(noise, patching_of(overconfident).noise_errors(users, 12, seed=0))
    assert float(noise.max(dim=1).values.median()) < float(
        patching_of(overconfident).errors(users).max()
    )


def test_one_user_at_a_time(overconfident):
    with pytest.raises(ValueError, match="one user at a time, got 3"):
        patching_of(overconfident).patch(users_of("aligned", 3))
