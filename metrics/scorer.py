"""A scorer for scikit-learn's model selection, by the calibration error of a utility class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .utilities.base import UtilityClass
from .utilities.function import Utility, utility_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Classifier(Protocol):
    """A fitted classifier as scikit-learn describes it; its features may be anything."""

    @property
    def classes_(self) -> ArrayLike: ...
    def predict_proba(self, X: Any, /) -> ArrayLike: ...


@dataclass(frozen=True)
class CalibrationScorer:
    """Minus the largest UC of `utility`, so that larger is better."""

    utility: UtilityClass

    def __call__(
        self,
        estimator: Classifier,
        X: object,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score the `predict_proba` of a fitted classifier, whose `classes_` name its columns."""
        probabilities, classes = estimator.predict_proba(X), estimator.classes_
        errors = self.utility.calibration_errors(
            probabilities, y, sample_weight=sample_weight, classes=classes
        )
        return -float(errors.max())


def calibration_scorer(utility: Utility) -> CalibrationScorer:
    """Return a scorer `(estimator, X, y, sample_weight=None)` for scikit-learn.

    `cross_val_score(model, X, y, scoring=calibration_scorer(TopK()))` gives minus the largest UC
    of each fold. Compare a model's calibration with the Brier score or the log loss beside it:
    a forecast that says the same of every point can have a small calibration error.

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_digits(return_X_y=True)
    >>> scoring = calibration_scorer(TopK())
    >>> cross_val_score(GaussianNB(), X[:600], y[:600], cv=3, scoring=scoring).round(2)
    array([-0.18, -0.17, -0.25])

    Args:
        utility: a utility class such as `TopK()`, or a function p [n, C] -> u⃗ [n, C].

    Returns:
        The scorer. It takes a fitted classifier, its points X and labels y [n], and returns minus
        UC of the class (eq. 3.5), in the unit of the utilities.

    Raises:
        InputError: what is no utility; and, when the scorer is called, as `accuracy`.
    """
    return CalibrationScorer(utility_of(utility))
