"""Utility calibration in a training loop: a torchmetrics metric for any number of processes.

    from metrics/torchmetrics.py import UtilityCalibrationError
    error = UtilityCalibrationError(TopK(), logits=True)
    for x, y in loader: error.update(model(x), y)
    error.compute()

This module needs the extra `torchmetrics`; the rest of the package does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .errors import InputError
from .forecast import Forecast
from .utilities.base import UtilityClass, utility_of
from .utilities.payoffs import ClassWise, TopK
from .validation import as_tensor, check_labels, check_logits, check_probabilities

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ModuleNotFoundError as error:
    message = "torchmetrics is not installed: pip install torchmetrics"
    raise ModuleNotFoundError(message, name=error.name) from error

Utility = UtilityClass | Callable[[Tensor], Tensor]


class UtilityCalibrationError(Metric):
    """The largest UC (eq. 3.2) over the utilities of one class or several, on all points seen.

    The worst interval over all points is not a mean over batches or processes. So the points are
    kept as they were given, [n, C], and gathered from all processes before the computation. Points
    that a distributed sampler repeats to fill a batch count twice, as in every metric. Each process
    needs at least one point; otherwise gathering fails.

    Args:
        utilities: a utility class, a function p [n, C] -> u⃗ [n, C] from torch to torch, or several
            of these; class-wise and top-K utilities if not given (U_comb of the paper).
        logits: whether `update` is given logits, whose softmax is then taken in float64.
        **kwargs: arguments of `torchmetrics.Metric`.
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    forecasts: list[Tensor]
    labels: list[Tensor]

    def __init__(
        self,
        utilities: Utility | Iterable[Utility] | None = None,
        logits: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        given = (ClassWise(), TopK()) if utilities is None else utilities
        several = (given,) if isinstance(given, UtilityClass) or callable(given) else given
        self.utilities = [utility_of(utility) for utility in several]
        if not self.utilities:
            raise InputError(
                "none given",
                field="utilities",
                fixes="leave them out for class-wise and top-K ones",
            )
        self.logits = logits
        self.add_state("forecasts", default=[], dist_reduce_fx="cat")
        self.add_state("labels", default=[], dist_reduce_fx="cat")

    def update(self, preds: Any, target: Any) -> None:
        """Add points: probabilities (or logits, if `logits`) [n, C], and their classes [n]."""
        check = check_logits if self.logits else check_probabilities
        n, classes = check(preds, "preds").shape
        labels = check_labels(target, n, classes, "target")
        # Data loaders reuse the memory of NumPy's arrays, so these are copied.
        points = as_tensor(preds) if isinstance(preds, Tensor) else as_tensor(preds).clone()
        self.forecasts.append(points)
        self.labels.append(labels.to(points.device, copy=not isinstance(target, Tensor)))

    def compute(self) -> Tensor:
        """Return the largest UC over the utilities, in their unit: a float64 scalar."""
        if not len(self.labels):
            raise InputError("no points", fixes="call update before compute")
        preds = dim_zero_cat(self.forecasts)
        p = torch.softmax(preds.to(torch.float64), dim=1) if self.logits else preds
        forecast = Forecast(check_probabilities(p, "preds"))
        outcomes = forecast.outcomes(dim_zero_cat(self.labels))
        return torch.stack([u.errors(forecast, outcomes).max() for u in self.utilities]).max()
