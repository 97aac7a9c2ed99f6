"""The rank of a label by comparisons, in both implementations, is its place in the order."""

import numpy as np
import pytest
import torch

from metrics import reference
from metrics.kernels.label_ranks import label_ranks, label_ranks_torch


@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic", "one_hot", "flat"])
@pytest.mark.parametrize("draws", [0, 1, 3])
def test_labels_rank_where_they_stand_in_the_order(kind, draws, forecast_of):
    p, _ = forecast_of(kind, 50, 6, 4)
    labels = np.random.default_rng(2).integers(6, size=(draws, 50))
    expected = torch.from_numpy(reference.ranks(p)[np.arange(50), labels])
    for implementation in (label_ranks, label_ranks_torch):
        assert torch.equal(implementation(torch.from_numpy(p), torch.from_numpy(labels)), expected)
