"""U_CWE (Example 3.4): one class against the others."""

from __future__ import annotations

import torch
from torch import Tensor

from metrics.forecast import Forecast
from metrics.utilities.payoffs import PayoffClass


class ClassWise(PayoffClass):
    """U_CWE (Example 3.4): for each class c, v = p_c and u = 1{y = c}."""

    coordinate = "class"

    def count(self, classes: int) -> int:
        """One utility per class."""
        return classes

    def payoffs(self, classes: int, part: slice) -> Tensor:
        """Unit vectors."""
        return torch.eye(classes, dtype=torch.float64)[part]

    def predicted(self, forecast: Forecast, part: slice, spare: Tensor | None = None) -> Tensor:
        """Columns of the probabilities: exactly those, so ties stay ties."""
        return forecast.probabilities[:, part].T
