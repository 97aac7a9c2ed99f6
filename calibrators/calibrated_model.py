"""A classifier and its calibrator as one scikit-learn estimator."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from utility_calibration.metrics.validation import (
    InputError,
    check_nothing_is_masked,
    check_weights,
)

from .inputs import from_probabilities
from .temperature import TemperatureScaling

METHODS = ("decision_function", "predict_proba")
ONE_SCORE = 'take one score per class (SVC: decision_function_shape="ovr")'


class CalibratedModel(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Fit a classifier, and a calibrator on its scores of points that it was not trained on.

    Every point is scored by a classifier that was trained on the other folds (stacking, Wolpert
    1992; as `ensemble=False` of scikit-learn's CalibratedClassifierCV). The classifier that
    predicts is trained on all points.

    Args:
        classifier: any scikit-learn classifier with `decision_function` or `predict_proba`; the
            first is used if there are both, because probabilities are rounded near 0 and 1.
        calibrator: a calibrator of this package; None means TemperatureScaling().
        cv: a number of folds, or a splitter, as scikit-learn takes them.

    Attributes:
        classes_: [C], labels of any kind, sorted; the columns of `predict_proba`.
        classifier_, calibrator_: the fitted classifier and the fitted calibrator.
        n_features_in_, feature_names_in_: those of the classifier, if it has them.

    Raises:
        InputError: there is only one class, or a class has fewer points than folds.
    """

    classes_: NDArray[Any]
    classifier_: Any
    calibrator_: Any

    def __init__(self, classifier: Any, calibrator: Any = None, cv: Any = 5) -> None:
        self.classifier = classifier
        self.calibrator = calibrator
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit both on features `X` and labels `y` [n], with `sample_weight` [n] if given.

        `InputError` if there are weights, but the classifier's `fit` takes none or the calibrator
        has no weighted form (`Calibrator.fit` says which calibrators have one).
        """
        for values, name in ((X, "X"), (y, "y")):
            check_nothing_is_masked(values, name)
        check_classification_targets(y)
        self.classes_, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        self._check_classes(codes)
        weights = {}
        if sample_weight is not None:
            if not has_fit_parameter(self.classifier, "sample_weight"):
                raise InputError(
                    f"sample_weight: {type(self.classifier).__name__}.fit takes none; take a "
                    "classifier that does, or draw points in proportion to their weights"
                )
            weights["sample_weight"] = check_weights(sample_weight, len(codes)).cpu().numpy()
        folds = check_cv(self.cv, codes, classifier=True)
        options: Any = {"cv": folds, "method": self._method(), "params": weights}
        scores = cross_val_predict(self.classifier, X, codes, **options)
        calibrator = clone(self.calibrator or TemperatureScaling())
        calibrator.inputs = "logits"  # `_logits` turns the classifier's scores into logits
        self.calibrator_ = calibrator.fit(self._logits(scores), codes, **weights)
        self.classifier_ = clone(self.classifier).fit(X, codes, **weights)
        self._check_one_score_per_class(X)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.classifier_, name):
                setattr(self, name, getattr(self.classifier_, name))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return calibrated probabilities [n, C], columns in the order of `classes_`."""
        check_is_fitted(self)
        scores = getattr(self.classifier_, self._method())(X)
        return np.asarray(self.calibrator_.predict_proba(self._logits(scores)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.classifier).input_tags
        return tags

    def _method(self) -> str:
        for name in METHODS:
            if hasattr(self.classifier, name):
                return name
        raise InputError(
            f"classifier: {type(self.classifier).__name__} has neither {' nor '.join(METHODS)}; "
            "take one that has"
        )

    def _logits(self, scores: Any) -> NDArray[np.float64]:
        values = np.asarray(scores, dtype=np.float64)
        if self._method() == "predict_proba":
            return from_probabilities(values)
        if values.ndim == 1:  # for two classes scikit-learn gives only the second class's margin
            return np.stack([-values / 2, values / 2], axis=1)
        if values.shape[1] != len(self.classes_):
            raise InputError(
                f"classifier: its decision_function gives {values.shape[1]} scores for "
                f"{len(self.classes_)} classes; {ONE_SCORE}"
            )
        return values

    def _check_one_score_per_class(self, X: Any) -> None:
        """Raise `InputError` for scores of pairs of classes; three classes have three pairs."""
        if len(self.classes_) != 3 or self._method() == "predict_proba":
            return
        named = self.classifier_.decision_function(X).argmax(axis=1)
        predicted = self.classifier_.predict(X)
        agree = [np.mean(named[predicted == code] == code) for code in np.unique(predicted)]
        if np.mean(agree) < 0.5:
            raise InputError(
                "classifier: the largest of its 3 scores is not the class that it predicts; "
                f"{ONE_SCORE}"
            )

    def _check_classes(self, codes: NDArray[Any]) -> None:
        if len(self.classes_) < 2:
            raise InputError(f"y: one class {self.classes_}; give at least 2 classes")
        counts = np.bincount(codes)
        if isinstance(self.cv, int) and counts.min() < self.cv:
            raise InputError(
                f"y: class {self.classes_[counts.argmin()]} has {counts.min()} points, fewer than "
                f"the {self.cv} folds of cv; give more points of it, or a smaller cv"
            )
