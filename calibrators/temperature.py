"""Temperature scaling (Guo et al. 2017): softmax(z / T) with the T > 0 of least loss."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.softmax import softmax

from .base import Calibrator
from .losses import Loss
from .solvers.temperature import OUTCOMES, fit_temperature
from .stored import POSITIVE, Learned


@dataclass(eq=False, repr=False)
class TemperatureScaling(Calibrator):
    """Temperature scaling: softmax(z / T) with the T > 0 of least loss (Guo et al. 2017).

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> TemperatureScaling().fit(logits, labels).predict_proba([[4.0, 0.0], [8.0, 0.0]]).round(3)
    array([[0.75, 0.25],
           [0.9 , 0.1 ]])

    The inverse temperature lies within 1e-6 and 1e6 divided by the logits' spread (root mean square
    of the row-centred logits), so the result does not depend on the logits' unit. Data without an
    error, logits that do not favour the labels, and constant logits have no interior optimum. A
    one-line `ConvergenceWarning` then names the case and the T that was taken (`OUTCOMES`).

    Args:
        loss: the loss that T minimises.
        inputs: what X is.

    Attributes:
        temperature_: T.
        loss_, nll_: mean loss and mean NLL (nats) of the calibration data at this T.
        outcome_: "optimum" or the boundary case.
        n_evaluations_: passes over all logits.
    """

    learned: ClassVar[Learned] = {"temperature_": POSITIVE}

    takes_weights = True
    needs_little_memory = True
    loss: Loss = "nll"

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        fit = fit_temperature(logits, labels, self.loss, weights)
        if fit.outcome != "optimum":
            from sklearn.exceptions import ConvergenceWarning  # it takes long to import

            message = f"TemperatureScaling: {OUTCOMES[fit.outcome]} (T = {1 / fit.beta:.4g})"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)  # the caller of fit
        self.temperature_, self.loss_, self.nll_ = 1 / fit.beta, fit.loss, fit.nll
        self.outcome_, self.n_evaluations_ = fit.outcome, fit.evaluations

    def _predict_proba(self, logits: Array) -> Array:
        return softmax(logits, 1 / self.temperature_)

    def _to_module(self, dtype: Any) -> Any:
        from .export.affine import AffineSoftmax

        return AffineSoftmax(1 / self.temperature_, 0.0, dtype)
