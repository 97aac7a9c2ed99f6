"""What every calibrator shares: input checks and scikit-learn's conventions.

A calibrator is a scikit-learn classifier whose features are a model's logits [n, C], one column
per class, and whose labels are the class numbers 0 … C-1, or names (`metrics/class_order.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from utility_calibration.metrics.arrays import Array, OtherArray, like
from utility_calibration.metrics.class_order import classes_of, codes_of
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.threads import LITTLE, blas_on_one_thread, one_thread
from utility_calibration.metrics.layout import check_same_order, points_of
from utility_calibration.metrics.validation import check_weights
from utility_calibration.metrics.weights import as_counts

from .conditioning import Conditioning, condition
from .estimator import Estimator, check_is_fitted
from .grouped import names_to_fit, names_to_predict
from .inputs import (
    ENOUGH_ROWS,
    Inputs,
    check_choices,
    check_columns,
    column_names,
    logits_of,
    warn_of_absent,
    warn_of_lookalike,
)
from .prior import shares_of
from .saving import Saved
from .stored import Learned

if TYPE_CHECKING:
    import torch


@dataclass(eq=False, repr=False)
class Calibrator(Estimator, Saved, ABC):
    """Base of all calibrators: `fit(X, y)`, then `predict_proba(X)`, X logits and y labels.

    With `inputs="probabilities"` X holds probabilities, and `from_probabilities` takes their
    logarithm; with "log_probabilities" X holds these logarithms, -inf for 0. `Uncalibrated` keeps
    zeros, all others take them as 1e-12. calibrators/conditioning.py says what becomes of
    impossible classes, whose logits are -inf or a padding such as -1e9, and of classes without a
    calibration point.

    Subclasses define `_fit`, `_predict_proba` and `_to_module` for finite logits of classes with
    calibration points. `_fit` stores what it learns in NumPy arrays or numbers whose names end in
    an underscore. `save` writes these and the fields of the dataclass. A field whose type is a
    `Literal` is checked by this class.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> calibrator = TemperatureScaling().fit(logits, labels)
    >>> isinstance(calibrator, Calibrator), calibrator.classes_, calibrator.n_features_in_
    (True, array([0, 1]), 2)

    Attributes:
        classes_: [C], the class numbers 0 … C-1, or the classes' names, in the columns' order.
        n_features_in_: C.
        feature_names_in_: [C], the columns' names, if `fit` was given a data frame.
        shares_: float64 [C], the shares of the classes among the calibration points (`reweight`).
        n_points_: float, the number of calibration points; of weights it is the effective number.
        present_: int64 [P], the columns of the classes that have calibration points.
        conditioning_: float64 [4], the numbers of `Conditioning`.
        kept_: float64 [C], what it multiplies the probabilities of other classes by.
        tuning_log_: a dict per setting scored (`parameters`, `score`, `seconds`); empty if nothing
            was tuned. `save` does not store it.
    """

    takes_weights: ClassVar[bool] = False
    """Whether `fit` has a weighted form; `_fit` then takes the weights [n] as third argument. Their
    sum is a number of points."""
    takes_utilities: ClassVar[bool] = False
    """Whether it calibrates to `utilities`, a person's own utility classes."""
    needs_little_memory: ClassVar[bool] = False
    """Whether a fit holds hardly more than the logits of its points."""
    takes_groups: ClassVar[bool] = False
    """Whether groups of points may get maps of their own (`grouped.py`). `_fit` and
    `_predict_proba` then have the keyword argument `names` [n], the points' groups."""
    needs_groups = False  # no ClassVar, because `LogitShiftPatching` has a field of this name
    """Whether `fit` refuses to go without groups."""
    is_learned: ClassVar[bool] = True
    """Whether `fit` learns something; then `calibrators/conditioning.py` prepares the logits."""
    takes_zeros: ClassVar[bool] = False
    """Whether 1e-12 may replace a probability of 0 in `_fit`, because only its rank matters."""
    one_thread_up_to: ClassVar[int] = LITTLE
    """Logits up to which a fit works on one thread."""
    learned: ClassVar[Learned] = {}
    """What `_fit` stores that predictions use, beside what the parent classes store."""
    inputs: Inputs = field(default="logits", kw_only=True)
    """What X is."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        ignore_index: int | str | None = None,
    ) -> Self:
        """Fit, and warn where a class has no point, or X looks like probabilities or votes.

        Args:
            X: logits [n, C], C >= 2; for two classes also [n] or [n, 1], the log-odds of class 1.
                Arrays, torch tensors and data frames are accepted.
            y: labels [n] in 0 … C-1, or names that `classes` or a data frame's columns have; with
                labels [B, …] X is [B, …, C] or [B, C, …] (metrics/layout.py).
            sample_weight: [n], if the method `takes_weights`; 2 counts as two points, 0 as none. If
                not all are whole numbers, only their proportions count (metrics/weights.py).
            groups: [n], names of groups that get maps of their own, if the method `takes_groups`.
            classes: [C], the classes' names in the order of the columns.
            ignore_index: points of this label are left out.

        Raises:
            InputError: NaN or +inf among the logits, labels out of range, lengths that differ, a
                point without a group's name, or weights or groups that the method does not take.
        """
        check_choices(self)
        optional = {"sample_weight": sample_weight, "groups": groups}
        X, y, sample_weight, groups = points_of(X, y, ignore_index, "X", **optional)
        z = logits_of(X, self.inputs, keeps_zeros=not self.is_learned)
        n_points, n_classes = z.shape
        named = names_to_fit(self, groups, n_points)
        if self.inputs == "logits":
            warn_of_lookalike(z)
        class_names = classes_of(y, X, n_classes, classes)
        labels = codes_of(y, n_points, class_names)
        self.tuning_log_: list[dict[str, Any]] = []
        weights: tuple[Array, ...] = ()  # an argument of methods that take weights, and only then
        if sample_weight is not None:
            given_weights = self._checked_weights(sample_weight, n_points)
            counts = given_weights > 0
            z, labels = z[counts], labels[counts]
            named = {argument: names[counts] for argument, names in named.items()}
            weights = (as_counts(given_weights[counts]),)
        with blas_on_one_thread(), one_thread(z.size <= self.one_thread_up_to):
            self._learn(z, labels, *weights, **named)
        warn_of_absent(labels, class_names, self.is_learned)
        self.classes_ = class_names
        self.shares_ = shares_of(labels, n_classes, *weights)
        self.n_points_ = float(weights[0].sum()) if weights else float(len(labels))
        if self.takes_groups:
            self.groups_ = np.unique(named.get("names", np.empty(0, np.str_)))
        self.n_features_in_ = n_classes
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        columns = column_names(X)
        if columns is not None:
            self.feature_names_in_: NDArray[np.str_] = np.array(columns)
        return self

    def _checked_weights(self, sample_weight: ArrayLike, n_points: int) -> Array:
        """Return weights [n]; `InputError` if the method has no weighted form."""
        if not self.takes_weights:
            message = f"{type(self).__name__} has no weighted form"
            fix = "draw points in proportion to their weights instead"
            raise InputError(message, field="sample_weight", fixes=fix)
        return check_weights(sample_weight, n_points)

    @overload
    def predict_proba(self, X: OtherArray, groups: ArrayLike | None = None) -> OtherArray: ...
    @overload
    def predict_proba(
        self, X: ArrayLike, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]: ...
    def predict_proba(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Return probabilities float64 [n, C] of the kind of X [n, C], on its device.

        `groups` [n] names each point's group, if the fit had groups. A group that it had no point
        of gets the map without groups, and a warning names it.

        Raises:
            InputError: the number of classes or the columns of a data frame are not the fit's, or
                groups are given to a calibrator without groups, or are missing.
        """
        return like(self._probabilities(X, groups), X)

    @overload
    def predict_log_proba(self, X: OtherArray, groups: ArrayLike | None = None) -> OtherArray: ...
    @overload
    def predict_log_proba(
        self, X: ArrayLike, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]: ...
    def predict_log_proba(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Return the logarithm of `predict_proba(X, groups)`, float64 [n, C]; -inf for zero."""
        return like(_log(self._probabilities(X, groups)), X)

    @overload
    def predict(
        self, X: OtherArray, groups: ArrayLike | None = None
    ) -> OtherArray | NDArray[np.str_]: ...
    @overload
    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> NDArray[Any]: ...
    def predict(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Return the most probable class of each row, [n]; of equal ones the first.

        Numbers are an array of the kind of X, names one of NumPy. `groups`: see `predict_proba`.
        """
        best = self._probabilities(X, groups).argmax(axis=1)
        chosen = self.classes_[best]
        return chosen if chosen.dtype.kind == "U" else like(chosen, X)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of `predict(X, groups)`, weighted by `sample_weight` [n] if given."""
        check_same_order({"X": X, "y": y, "sample_weight": sample_weight})
        best = self._probabilities(X, groups).argmax(axis=1)
        truth = codes_of(y, len(best), self.classes_)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(best))
        return float(np.average(best == truth, weights=sample_weight))

    def to_module(self, dtype: "torch.dtype | None" = None) -> "torch.nn.Module":
        """Return a torch module that computes `predict_proba` in `dtype`: [n, C] -> [n, C].

        It is for deployment by `torch.export` or ONNX; an exported file does not need this package.
        """
        check_is_fitted(self)
        from .export.whole import module_of

        return module_of(self, dtype)

    def _probabilities(self, X: ArrayLike, groups: ArrayLike | None = None) -> Array:
        """Return probabilities float64 [n, C] of checked points."""
        check_is_fitted(self)
        check_choices(self)
        z = logits_of(X, self.inputs, keeps_zeros=not self.is_learned)
        check_columns(X, z.shape[1], self)
        if self.inputs == "logits" and len(z) >= ENOUGH_ROWS:
            warn_of_lookalike(z, stacklevel=4)
        named = names_to_predict(self, X, groups, z.shape[0])
        with blas_on_one_thread():
            return self._predicted(z, **named)

    def _learn(self, z: Array, labels: Array, *weights: Array, **named: Array) -> None:
        """Fit to checked logits [n, C], which may be -inf; `_fit` gets what can be fitted."""
        fit: Callable[..., None] = self._fit
        if not self.is_learned:
            return
        zeros = not self.takes_zeros
        learned = condition(z, labels, *weights, whole=self._is_whole(), zeros=zeros)
        numbers = learned.zero, learned.gap, learned.beta, learned.log_weight
        self.conditioning_ = np.array(numbers)
        self.present_ = learned.present
        self.kept_ = learned.factors
        if not learned.whole:
            labels = np.searchsorted(learned.present, labels)
        if len(learned.present) > 1:
            fit(learned.seen(z), labels, *weights, **named)

    def _predicted(self, z: Array, **named: Array) -> Array:
        """Return float64 [n, C] for checked logits [n, C], which may be -inf."""
        method: Callable[..., Array] = self._predict_proba
        predict = partial(method, **named)
        learned = self._conditioning()
        return predict(z) if learned is None else learned.predicted(z, predict)

    def _conditioning(self) -> Conditioning | None:
        if not self.is_learned:
            return None
        zero, gap, beta, log_weight = self.conditioning_.tolist()
        classes = self.present_, self.kept_, self._is_whole()
        return Conditioning(zero, gap, beta, log_weight, *classes)

    def _is_whole(self) -> bool:
        """Whether `_fit` gets absent classes, too: utilities are defined on all classes."""
        return getattr(self, "utilities", None) is not None

    @abstractmethod
    def _fit(self, logits: Array, labels: Array) -> None:
        """Learn from checked `logits` float32 or float64 [n, C] and `labels` int64 [n]."""

    @abstractmethod
    def _predict_proba(self, logits: Array) -> Array:
        """Return float64 [n, C] for checked `logits` float32 or float64 [n, C]."""

    def _to_module(self, dtype: Any) -> Any:
        """Return a module of arrays of type `dtype` that computes `_predict_proba`."""
        raise TypeError(f"{type(self).__name__} must define _to_module")


def _log(p: Array) -> Array:
    """Return ln p; -inf for 0, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(p)
