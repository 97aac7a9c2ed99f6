"""A pool of maps as a torch module: `maps.Features` and `maps.MapPoint` in operations of torch."""

from typing import Any

import torch
from torch import Tensor, nn

from ..pooled import maps
from .affine import log_mixture
from .order import order_of


class PooledModule(nn.Module):
    """Logits [n, C] to the pool's probabilities [n, C], for `torch.export` and ONNX."""

    map: Tensor

    def __init__(self, fitted: Any, dtype: torch.dtype) -> None:
        super().__init__()
        self.beta, self.share = fitted.inverse_temperature_, fitted.uniform_share_
        self.register_buffer("map", torch.tensor(fitted.map_, dtype=dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        q = torch.softmax(logits.to(self.map.dtype) * self.beta, dim=1)
        inputs, classes = log_mixture(q, self.share), q.shape[1]
        places = order_of(inputs, maps.TIED)[:, : maps.PLACES]
        top = inputs.gather(1, places)[:, :, None]
        at_rank = torch.eye(top.shape[1], max(maps.BIASES, top.shape[1])).to(top)
        gap = (top[:, :1] - top[:, 1:2]) * at_rank[:, :1]
        hinges, biases = (top - top.new_tensor(maps.KNOTS)).clamp(min=0), at_rank[:, : maps.BIASES]
        biases = biases.expand(top.shape[0], -1, -1)
        values = torch.cat([hinges, biases, at_rank[:, : maps.SLOPES] * top, gap], dim=2)
        count = maps.COUNT
        theta, shift, slopes = self.map.split((count, classes, len(self.map) - count - classes))
        if len(slopes) > classes:
            linear = inputs @ slopes.view(classes, classes).T
        else:
            linear = inputs * slopes
        scores = (linear + shift).scatter_add(1, places, values @ theta)
        return torch.softmax(scores, dim=1)
