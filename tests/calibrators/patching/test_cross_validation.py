"""The number of patches, chosen on held-out points."""

import numpy as np
import pytest
import torch

from calibrators import LogitShiftPatching
from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.audit import StandardFamilies
from calibrators.patching.cross_validation import fewest_steps, held_out_losses, point_losses
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent
from metrics import brier_score, negative_log_likelihood
from tests.calibrators.patching.patching_problems import over_confident, softmax


def test_point_losses_average_to_the_two_scores():
    logits, labels = over_confident(50, 4, seed=0)
    p = softmax(logits)
    state = PatchedForecast(torch.from_numpy(p), torch.from_numpy(labels))
    expected = negative_log_likelihood(p, labels)
    assert float(point_losses(state, "nll").mean()) == pytest.approx(expected)
    assert float(point_losses(state, "brier").mean()) == pytest.approx(brier_score(p, labels))


def test_a_gain_on_every_point_is_taken_however_small():
    losses = torch.tensor([[0.5, 0.9, 0.1], [0.4, 0.8, 0.0], [0.41, 0.81, 0.01]])
    assert fewest_steps(losses.double()) == 1


def test_a_gain_within_its_own_noise_is_not_worth_a_patch():
    random = np.random.default_rng(0)
    noise = torch.from_numpy(random.normal(size=100))
    losses = torch.stack([torch.zeros(100).double(), noise - noise.mean() - 0.05])
    assert fewest_steps(losses) == 0
    assert fewest_steps(torch.cat([losses[:1], losses[1:] - 0.2])) == 1


def test_the_fewest_patches_as_good_as_the_best_are_enough():
    noise = torch.from_numpy(np.random.default_rng(1).normal(size=64))
    losses = -torch.tensor([0.0, 0.5, 0.9, 0.99, 1.0]).double()[:, None].repeat(1, 64)
    losses[3:] += 0.3 * (noise - noise.mean()) * torch.tensor([[0.0], [1.0]])
    assert fewest_steps(losses) == 3


def test_every_fifth_point_is_predicted_by_patches_of_the_others():
    logits, labels = over_confident(60, 3, seed=2)
    p, y = torch.from_numpy(softmax(logits)), torch.from_numpy(labels)
    kept = []

    def run(state):
        kept.append(state.labels)
        return LogitShiftPatching()._run(state)

    losses = held_out_losses(p, y, run, "nll", max_steps=3, seed=0, fewest=fewest_steps)
    assert [len(part) for part in kept] == [48] * 5
    assert losses.shape == (4, 60)
    at_first = point_losses(PatchedForecast(p, y), "nll")
    torch.testing.assert_close(losses[0].sort().values, at_first.sort().values)


def test_a_replayed_run_goes_on_as_the_run_that_it_repeats():
    """Audits draw other utilities each round: the number of the round is continued, too."""
    logits, labels = over_confident(80, 4, seed=4)
    p, y = torch.from_numpy(softmax(logits)), torch.from_numpy(labels)

    def start():
        auditor = StandardFamilies(4, 20, seed=0, device=p.device)
        return Algorithm1(PatchedForecast(p, y), auditor, ProjectedDescent(1.0), tolerance=0.0)

    whole, repeated = start(), start()
    patches = [whole.round() for _ in range(6)]
    repeated.replay(patches[:3])
    for patch in patches[3:]:
        assert repeated.round()[1:] == patch[1:]


def test_no_audit_repeats_the_draws_of_another():
    auditor = StandardFamilies(4, 20, seed=0, device=torch.device("cpu"))
    draws = [auditor.draw(number) for number in range(3)]
    draws = [payoffs.sort(dim=1).values for pair in draws for payoffs in pair]
    assert len({tuple(payoffs.flatten().tolist()) for payoffs in draws}) == 6
