"""What every calibrator shares: input checks, scikit-learn's conventions, and files.

A calibrator is a scikit-learn classifier whose features are a model's logits [n, C], one column
per class, and whose labels are the class numbers 0 … C-1, or names (`metrics/class_order.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from utility_calibration.metrics.arrays import Array, OtherArray, like
from utility_calibration.metrics.class_order import classes_of, codes_of
from utility_calibration.metrics.errors import InputError, reason_of
from utility_calibration.metrics.kernels.threads import LITTLE, blas_on_one_thread, one_thread
from utility_calibration.metrics.layout import check_same_order, points_of
from utility_calibration.metrics.validation import check_weights
from utility_calibration.metrics.weights import as_counts

from .conditioning import Conditioning, condition
from .estimator import Estimator, check_is_fitted
from .files import read_archive, write_archive
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
from .stored import Learned, class_named, of_any_size, problem_of

if TYPE_CHECKING:
    import torch


@dataclass(eq=False, repr=False)
class Calibrator(Estimator, ABC):
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
    needs_groups = False
    """Whether `fit` refuses to go without groups."""
    is_learned: ClassVar[bool] = True
    """Whether `fit` learns something; then `calibrators/conditioning.py` prepares the logits."""
    takes_zeros: ClassVar[bool] = False
    """Whether 1e-12 may replace a probability of 0 in `_fit`, because only its rank matters."""
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
        """Fit on the logits X [n, C], C >= 2, and the labels y [n] in 0 … C-1.

        For two classes X may also be [n] or [n, 1], the log-odds of class 1. NumPy arrays, torch
        tensors and data frames are accepted. Labels may be names if `classes` [C] has the columns'
        names in their order, or the columns of a data frame bear them. `fit` warns about classes
        without a point, and if the values look like probabilities, percentages or votes. A point of
        `sample_weight` [n] 2 counts like two points, one of weight 0 is left out. Of weights that
        are not all whole only the proportions count (metrics/weights.py). Methods with
        `takes_weights` accept them. `groups` [n] are names of groups that get maps of their own,
        where a method has `takes_groups`. Points of the label `ignore_index` are left out. Labels
        [B, …] go with logits [B, …, C] or [B, C, …] (metrics/layout.py).

        Raises:
            InputError: NaN or +inf among the logits, labels out of range, lengths that differ, a
                point without a group's name, or weights or groups that the method does not take.
        """
        check_choices(self)
        optional = {"sample_weight": sample_weight, "groups": groups}
        X, y, sample_weight, groups = points_of(X, y, ignore_index, "X", **optional)
        z = logits_of(X, self.inputs, keeps_zeros=not self.is_learned)
        named = names_to_fit(self, groups, z.shape[0])
        if self.inputs == "logits":
            warn_of_lookalike(z)
        names_of_classes = classes_of(y, X, z.shape[1], classes)
        data = [z, codes_of(y, z.shape[0], names_of_classes)]
        self.tuning_log_: list[dict[str, Any]] = []
        if sample_weight is not None:
            if not self.takes_weights:
                message = f"{type(self).__name__} has no weighted form"
                fix = "draw points in proportion to their weights instead"
                raise InputError(message, field="sample_weight", fixes=fix)
            data.append(check_weights(sample_weight, z.shape[0]))
            counted = data[2] > 0
            data = [part[counted] for part in data]
            data[2] = as_counts(data[2])
            named = {key: names[counted] for key, names in named.items()}
        with blas_on_one_thread(), one_thread(z.size <= LITTLE):
            self._learn(*data, **named)
        warn_of_absent(data[1], names_of_classes, self.is_learned)
        self.classes_ = names_of_classes
        self.shares_ = shares_of(data[1], len(names_of_classes), *data[2:])
        self.n_points_ = float(data[2].sum()) if len(data) > 2 else float(len(data[1]))
        if self.takes_groups:
            self.groups_ = np.unique(named.get("names", np.empty(0, np.str_)))
        self.n_features_in_ = int(z.shape[1])
        self.__dict__.pop("feature_names_in_", None)
        columns = column_names(X)
        if columns is not None:
            self.feature_names_in_: NDArray[np.str_] = np.array(columns)
        return self

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
        """Return the most probable class of each row, [n]; the first of equal ones.

        The classes are of the kind of X, or a NumPy array of names if `fit` was given names.
        `groups` are as in `predict_proba`.
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

    def save(self, path: str | Path) -> Path:
        """Write the fitted calibrator to `path` (.npz, no pickle), atomically; return the path."""
        check_is_fitted(self)
        fitted = {
            name: np.asarray(value)
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_") and name != "tuning_log_"
        }
        return write_archive(path, type(self).__name__, self.get_params(deep=False), fitted)

    @classmethod
    def load(cls, path: str | Path | IO[bytes]) -> Self:
        """Return the calibrator that `save` wrote to `path`; its predictions are bitwise equal.

        `path` may also be the file, opened for reading bytes. `Calibrator.load` accepts every kind
        of calibrator, a subclass only its own. `InputError` if the file is missing, damaged, of
        another kind or of another format.
        """
        kind, parameters, fitted = read_archive(
            path, lambda name: of_any_size(class_named(name, cls, path))
        )
        try:
            calibrator = class_named(kind, cls, path)(**parameters)
        except TypeError as error:
            raise InputError(
                f"parameters of another version ({error})", file=path, fixes="fit again"
            ) from error
        vars(calibrator).update(fitted, tuning_log_=[])
        problem = calibrator._problem(fitted)
        if problem:
            message = f"damaged or changed, {problem}"
            raise InputError(message, file=path, fixes="fit and save it again")
        return calibrator

    def _problem(self, fitted: dict[str, Any]) -> str | None:
        """What is wrong with values from a file: a type, shape or range, or what they predict."""
        problem = problem_of(type(self), fitted, self._is_whole())
        if problem:
            return problem
        needed = {"shares_", "n_points_"}
        if self.is_learned:
            needed |= {"present_", "conditioning_", "kept_"}
        absent = needed - fitted.keys()
        if absent:
            return f"{min(absent)} is missing"
        if not self.is_learned:
            return None
        try:
            learned = self._conditioning()
            if learned is not None:
                if not (0 < learned.beta < np.inf and learned.gap > 0):
                    return "conditioning_ holds no inverse temperature"
                if len(learned.present) == 1 and not learned.whole:
                    return None  # `_fit` learned nothing
            ramp = np.arange(float(self.n_features_in_))
            p = self._trial(np.stack([0 * ramp, ramp, -ramp]))
        except Exception as error:
            return f"it predicts nothing ({reason_of(error)})"
        return None if bool(((p >= 0) & (p <= 2)).all()) else "it predicts no probabilities"

    def _trial(self, z: Array) -> Array:
        """The probabilities at logits [3, C], to see whether values from a file can be used."""
        return self._predicted(z)

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
        whole, zeros = self._is_whole(), not self.takes_zeros
        learned = condition(z, labels, *weights, whole=whole, zeros=zeros)
        marks = learned.zero, learned.gap, learned.beta, learned.log_weight
        self.present_, self.conditioning_ = learned.present, np.array(marks)
        self.kept_ = learned.factors
        if not learned.whole:
            labels = np.searchsorted(learned.present, labels)
        if len(learned.present) > 1:
            fit(learned.seen(z), labels, *weights, **named)

    def _predicted(self, z: Array, **named: Array) -> Array:
        """Return float64 [n, C] for checked logits [n, C], which may be -inf."""
        method: Callable[..., Array] = self._predict_proba
        learned, predict = self._conditioning(), partial(method, **named)
        return predict(z) if learned is None else learned.predicted(z, predict)

    def _conditioning(self) -> Conditioning | None:
        if not self.is_learned:
            return None
        zero, gap, beta, log_weight = self.conditioning_.tolist()
        marks = zero, gap, beta, log_weight
        return Conditioning(*marks, self.present_, self.kept_, self._is_whole())

    def _is_whole(self) -> bool:  # utilities are defined on all classes, also on absent ones
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
    with np.errstate(divide="ignore"):
        return np.log(p)
