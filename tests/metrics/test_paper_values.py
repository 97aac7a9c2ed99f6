"""Uncalibrated classifiers on their real test logits: the level of every metric is known."""

import numpy as np
import pytest
import torch

from utility_calibration.metrics import scorecard
from utility_calibration.pipeline.scoring.points import split_indices

SCALES = {
    "accuracy": 1e2,
    "brier": 1e2,
    "cwe_bin": 1e4,
    "tce_bin": 1e3,
    "u_cwe": 1e4,
    "u_topk": 1e3,
    "u_dcg": 1e3,
}
"""The units of the table below, one column per metric."""
KNOWN = {
    "cifar10_repvgg_a0": (94.6, 9.16, 34.7, 36.4, 97, 36.9, 24.5),
    "cifar10_resnet56": (94.3, 9.41, 32.6, 37.9, 96, 37.9, 25.3),
    "cifar10_resnet44": (93.9, 10.47, 39.8, 39.5, 117, 40.4, 26.9),
    "cifar100_repvgg_a2": (77.6, 32.20, 15.3, 55.8, 45, 49.7, 31.7),
    "cifar100_resnet56": (72.9, 41.50, 14.5, 141, 55, 141, 115),
}
"""What the uncalibrated classifiers measure, computed elsewhere in float64: means over ten seeded
splits. Other splits differ by 0.3 - 0.9 points of accuracy, and by 2 - 5 thousandths in the
top-class errors of one split."""
TOLERANCE = {  # relative, for the mean over ten other splits
    "accuracy": 0.01,
    "brier": 0.05,
    "cwe_bin": 0.08,
    "tce_bin": 0.08,
    "u_cwe": 0.16,
    "u_topk": 0.08,
    "u_dcg": 0.1,
}


@pytest.mark.parametrize("name", KNOWN)
def test_uncalibrated_metrics_are_at_their_known_level(name, shared_dir):
    with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
        logits, labels = archive["logits"], archive["labels"]
    p = torch.softmax(torch.from_numpy(logits).double(), dim=1)
    cards = []
    for split in range(10):
        _, test = split_indices(len(labels), split)
        cards.append(scorecard(p[test], labels[test], utilities=0, floor_repetitions=0).metrics)
    for (key, scale), expected in zip(SCALES.items(), KNOWN[name], strict=True):
        mean = scale * np.mean([card[key] for card in cards])
        assert mean == pytest.approx(expected, rel=TOLERANCE[key]), key
    assert all(card["u_comb"] == max(card["u_cwe"], card["u_topk"]) for card in cards)
