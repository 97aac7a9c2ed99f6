"""What the paper proves of UC, on real forecasts and by simulation: Proposition 3.1, Lemma 3.3."""

import math

import numpy as np
import pytest

from utility_calibration.metrics import utility_calibration

THRESHOLDS = np.linspace(-0.2, 1.2, 57)


def risk_gap(v, u, threshold):
    """How much the best monotone h lowers the risk of acting where v >= threshold.

    The loss is |u - threshold| for a wrong action. Acting on h(v) is acting on an upper set of v.
    """
    order = np.argsort(v, kind="stable")
    loss = (threshold - u)[order]
    acted_from = np.concatenate([np.cumsum(loss[::-1])[::-1], [0.0]])  # on points k, k + 1, …
    first_of_ties = np.concatenate([[True], np.diff(v[order]) > 0, [True]])
    acted = loss[v[order] >= threshold].sum()
    return float(acted - acted_from[first_of_ties].min()) / len(v)


@pytest.mark.parametrize("name", ["cifar10_repvgg_a0", "cifar100_resnet56"])
def test_no_monotone_map_of_the_utility_gains_more_than_twice_the_error(name, shared_dir):
    """Proposition 3.1: single classes, shortlists and the graded gain at three temperatures."""
    with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
        logits, labels = archive["logits"][:3000].astype(float), archive["labels"][:3000]
    shares = []
    for temperature in (1.0, 0.5, 2.5):
        p = np.exp((logits - logits.max(axis=1, keepdims=True)) / temperature)
        p /= p.sum(axis=1, keepdims=True)
        order = np.argsort(-p, axis=1, kind="stable")
        rank = np.argmax(order == labels[:, None], axis=1)
        ordered = np.take_along_axis(p, order, axis=1)
        gains = 1 / np.log2(2 + np.arange(p.shape[1]))
        users = [(p[:, k], (labels == k).astype(float)) for k in range(5)]
        users += [(ordered[:, :k].sum(axis=1), (rank < k).astype(float)) for k in (1, 2, 5)]
        users.append((ordered @ gains, gains[rank]))
        for v, u in users:
            error = float(utility_calibration(v, u))
            gaps = [risk_gap(v, u, threshold) for threshold in THRESHOLDS]
            assert min(gaps) >= -1e-12
            assert max(gaps) <= 2 * error + 1e-12
            shares.append(max(gaps) / error)
    assert max(shares) > 0.3  # acting on these forecasts does lose something


def test_the_sample_bound_of_the_paper_holds_and_the_deviation_falls_with_the_root_of_n():
    """Lemma 3.3 with the constants of its proof, for a law whose UC is known.

    v is uniform, u is 1 with probability v + .1 above one half and v - .1 below, cut off at 0 and
    1. So the worst interval is one half of [0, 1], and UC = .4 · .1 + .1² / 2 = .045.
    """
    random, share, truth = np.random.default_rng(0), 0.1, 0.045
    deviations = {}
    for n in (400, 6400):
        v = random.random((300, n))
        chance = np.clip(v + np.where(v < 0.5, -0.1, 0.1), 0, 1)
        u = (random.random((300, n)) < chance).astype(float)
        found = utility_calibration(v, u)
        deviations[n] = np.quantile(np.abs(found - truth), 1 - share)
        assert deviations[n] <= 16 / math.sqrt(n) + 4 * math.sqrt(math.log(1 / share) / (2 * n))
    assert 2.5 < deviations[400] / deviations[6400] < 5.5  # √16 = 4
