"""Utility calibration in a training loop: a torchmetrics metric for any number of processes.

    from utility_calibration.metrics.torchmetrics import UtilityCalibrationError
    error = UtilityCalibrationError(TopK(), logits=True)
    for x, y in loader: error.update(model(x), y)
    error.compute()

This module needs the extra `torchmetrics`; the rest of the package does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .arrays import Array, as_array, plain
from .class_order import column_numbers
from .errors import InputError
from .forecast import Forecast
from .kernels.bucket_sums import bounds_of
from .layout import is_kept, points_of
from .precision import warn_of_lost_digits
from .streaming import StreamingCalibration
from .streaming_result import COMBINED, Seen, Totals
from .utilities.function import Utility, utilities_of
from .utilities.standard import ClassWise, TopK
from .validation import both_classes, check_logits, check_probabilities

try:
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ModuleNotFoundError as error:
    message = "torchmetrics is not installed: pip install torchmetrics"
    raise ModuleNotFoundError(message, name=error.name) from error


class UtilityCalibrationError(Metric):
    """UC of one class of utilities (eq. 3.5), or of several together, on all points seen.

    The worst interval over all points is not a mean over batches or processes. Without `buckets`
    the points are kept, [n, C], and gathered from all processes; the error is exact, and each
    process needs at least one point. With `buckets`, sums of a fixed size are kept and added up
    (`StreamingCalibration`): 39 KB per utility and process at 1,000 buckets. From about 10,000
    points per process on these are smaller than float64 points, for class-wise and top-K utilities.

    What is kept are tensors on the metric's device, which processes exchange as they are. NumPy
    computes the sums on the CPU: with `buckets` on a GPU, each batch and the sums are copied there
    and back.

    Points that a distributed sampler repeats to fill a batch count twice, as in every metric.

    Args:
        utilities: a utility class, a function p [n, C] -> u⃗ [n, C] on NumPy arrays, or several of
            these; class-wise and top-K utilities if not given (U_comb of the paper).
        logits: whether `update` is given logits, whose softmax is then taken in float64.
        classes, buckets: C and the number of buckets per utility; both or neither.
        ignore_index: points of this label are left out.
        **kwargs: arguments of `torchmetrics.Metric`.
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    forecasts: list[Tensor]
    labels: list[Tensor]

    def __init__(
        self,
        utilities: Utility | Iterable[Utility] | None = None,
        logits: bool = False,
        classes: int | None = None,
        buckets: int | None = None,
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.utilities = utilities_of((ClassWise(), TopK()) if utilities is None else utilities)
        self.logits, self.ignore_index = logits, ignore_index
        self.streaming: StreamingCalibration | None = None
        if (classes is None) != (buckets is None):
            raise InputError("give both or neither", field="classes and buckets")
        if classes is None or buckets is None:
            self.add_state("forecasts", default=[], dist_reduce_fx="cat")
            self.add_state("labels", default=[], dist_reduce_fx="cat")
            return
        self.streaming = StreamingCalibration(self.utilities, classes, buckets, logits)
        for name, nothing in self.streaming.nothing()._asdict().items():
            reduction = "sum" if COMBINED[name] is np.add else "max"
            self.add_state(name, default=torch.from_numpy(nothing), dist_reduce_fx=reduction)

    def set_dtype(self, dst_type: str | torch.dtype) -> UtilityCalibrationError:
        """Keep the type, because sums need float64."""
        return self

    def update(self, preds: ArrayLike | Tensor, target: ArrayLike | Tensor) -> None:
        """Add points: probabilities (or logits, if `logits`) and their classes.

        `target` is [B, …] and `preds` [B, C, …], as of torch's cross entropy, or [B, …, C]. If both
        fit, this is refused. For two classes `preds` may be those of class 1 alone, [B].
        """
        if self.ignore_index is not None and not is_kept(target, self.ignore_index).any():
            return
        preds, target = points_of(preds, target, self.ignore_index, "preds")
        scores = both_classes(preds, "preds", log_odds=self.logits)
        if self.logits:
            points = check_logits(scores, "preds")
            warn_of_lost_digits(points)
        else:
            points = check_probabilities(scores, "preds")
        labels = column_numbers(target, preds, points.shape, "target")
        if self.streaming is None:
            self.forecasts.append(self._copied(scores))
            self.labels.append(self._copied(labels))
            return
        if points.shape[1] != self.streaming.classes:
            message = f"{points.shape[1]} classes, expected {self.streaming.classes}"
            raise InputError(message, field="preds")
        seen = self.streaming.updated(self._seen(), points, labels, np.ones(len(points)))
        for name, sums in seen._asdict().items():
            setattr(self, name, torch.from_numpy(sums).to(self.device))

    def _copied(self, numbers: Array) -> Tensor:
        """Return a copy on the metric's device: data loaders reuse the memory of their arrays."""
        return torch.tensor(numbers, device=self.device)

    def _seen(self) -> Seen:
        """Return the sums as NumPy arrays, which share the memory of states on the CPU."""
        return Seen(*(plain(getattr(self, name)) for name in Seen._fields))

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Return what the largest UC lies between, with `buckets`: two float64 scalars."""
        seen = self._seen()
        weight = Totals(*seen.totals).weight
        if weight == 0:
            raise InputError("no points: call update before compute")
        bounds = bounds_of(seen.buckets)
        return self._copied(bounds.lower.max() / weight), self._copied(bounds.upper.max() / weight)

    def compute(self) -> Tensor:
        """Return the largest UC over the utilities, in their unit: a float64 scalar.

        With `buckets` it is the middle of `bounds`.
        """
        if self.streaming is not None:
            return torch.stack(self.bounds()).mean()
        if not len(self.labels):
            raise InputError("no points: call update before compute")
        preds = dim_zero_cat(self.forecasts)
        p = torch.softmax(preds.to(torch.float64), dim=1) if self.logits else preds
        forecast = Forecast(check_probabilities(p, "preds"))
        outcomes = forecast.outcomes(as_array(dim_zero_cat(self.labels)))
        errors = [utility.errors(forecast, outcomes).max() for utility in self.utilities]
        return self._copied(np.max(errors))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value, or several values of `forward` or `compute`: figure and axes."""
        return self._plot(val, ax)
