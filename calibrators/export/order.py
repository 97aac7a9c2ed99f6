"""The ranking of a row's classes in operations that exporters accept."""

import torch
from torch import Tensor


def order_of(values: Tensor, tied: float) -> Tensor:
    """Return `descending_order` of metrics/kernels/ranks.py: [n, C] -> int64 [n, C]."""
    classes = values.shape[1]
    ranked, order = torch.sort(values, dim=1, descending=True)
    starts = (ranked[:, :-1] - ranked[:, 1:] > tied).to(torch.int64)
    group = torch.nn.functional.pad(starts, (1, 0)).cumsum(dim=1)
    # One number per class orders by group, then by class.
    return torch.sort(group * classes + order, dim=1).values % classes
