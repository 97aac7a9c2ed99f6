"""U_topK (Example 3.6) and U_TCE (3.4): is the outcome among the K most probable classes?"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from metrics.forecast import Forecast
from metrics.utilities.payoffs import PayoffClass
from metrics.validation import InputError, is_whole


class TopK(PayoffClass):
    """U_topK (Example 3.6): for each K in 1 … C, u = 1{rank(p, y) <= K} and v its probability.

    Args:
        ks: the K to use; all of 1 … C if not given.
    """

    coordinate = "rank"

    def __init__(self, ks: tuple[int, ...] | None = None) -> None:
        self.ks = ks

    def _chosen(self, classes: int) -> Tensor:
        if self.ks is None:
            return torch.arange(1, classes + 1)
        ks = list(self.ks) if isinstance(self.ks, Iterable) else []
        if not ks or not all(is_whole(k) and 1 <= k <= classes for k in ks):
            raise InputError(f"TopK: ks must be whole numbers in 1 … {classes}, got {self.ks!r}")
        return torch.tensor(ks)

    def count(self, classes: int) -> int:
        """One utility per K."""
        return len(self._chosen(classes))

    def payoffs(self, classes: int, part: slice) -> Tensor:
        """Ones up to rank K, then zeros."""
        ranks = torch.arange(classes)
        return (ranks < self._chosen(classes)[part, None]).to(torch.float64)

    def predicted(self, forecast: Forecast, part: slice, spare: Tensor | None = None) -> Tensor:
        """Sums of the K largest probabilities; of all K without a copy."""
        chosen = self._chosen(forecast.classes)[part]
        columns = part if self.ks is None else chosen.to(forecast.probabilities.device) - 1
        return forecast.joined(lambda some: some.top_sums[:, columns].T, len(chosen), spare)


class TopClass(TopK):
    """U_TCE (Example 3.4): v = max p and u = 1{argmax p = y}, the first class winning ties."""

    def __init__(self) -> None:
        super().__init__(ks=(1,))

    def predicted(self, forecast: Forecast, part: slice, spare: Tensor | None = None) -> Tensor:
        """The largest probability, which needs no ranking."""
        return forecast.probabilities.amax(dim=1)[None]

    def alike(self, forecast: Forecast) -> Tensor | None:
        """Equal probabilities: those that are equal but for their order have the same largest."""
        return forecast.alike
