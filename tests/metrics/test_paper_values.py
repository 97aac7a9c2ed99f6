"""Uncalibrated classifiers on their real test logits: the level of every metric is known."""

import numpy as np
import pytest
import torch

from metrics import scorecard
from pipeline.scoring.points import split_indices
from tests.known_levels import KNOWN, SCALES

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
