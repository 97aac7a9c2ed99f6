"""Fitted calibrators as files: what is written, and what a file is checked for.

A file may come from anybody, so its values are checked before they are used: their types, shapes
and ranges (`stored.py`), and whether they predict probabilities at all.
"""

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError, reason_of

from .estimator import check_is_fitted
from .files import read_archive, write_archive
from .stored import class_named, of_any_size, problem_of

if TYPE_CHECKING:
    from .conditioning import Conditioning

OF_ALL = {"shares_", "n_points_"}
OF_LEARNED = {"present_", "conditioning_", "kept_"}
"""Values that every calibrator has, and those of one that learns something."""


class Saved:
    """The part of `Calibrator` that writes and reads its files."""

    if TYPE_CHECKING:  # `Calibrator` has these
        is_learned: ClassVar[bool]
        n_features_in_: int
        get_params: Callable[..., dict[str, Any]]
        _is_whole: Callable[[], bool]
        _conditioning: Callable[[], Conditioning | None]
        _predicted: Callable[[Array], Array]

    def save(self, path: str | Path) -> Path:
        """Write the fitted calibrator to `path` (.npz, no pickle), atomically; return the path."""
        check_is_fitted(self)
        fitted = {}
        for name, value in vars(self).items():
            if name.endswith("_") and not name.startswith("_") and name != "tuning_log_":
                fitted[name] = np.asarray(value)
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
        """What is wrong with values from a file, in a few words; None if nothing is."""
        problem = problem_of(type(self), fitted, self._is_whole())
        if problem:
            return problem
        needed = OF_ALL | OF_LEARNED if self.is_learned else OF_ALL
        absent = needed - fitted.keys()
        if absent:
            return f"{min(absent)} is missing"
        if not self.is_learned:
            return None
        try:
            return self._problem_of_predictions()
        except Exception as error:
            return f"it predicts nothing ({reason_of(error)})"

    def _problem_of_predictions(self) -> str | None:
        """What is wrong with what the values predict."""
        learned = self._conditioning()
        if learned is not None:
            if not (0 < learned.beta < np.inf and learned.gap > 0):
                return "conditioning_ holds no inverse temperature"
            if len(learned.present) == 1 and not learned.whole:
                return None  # `_fit` learned nothing
        ramp = np.arange(float(self.n_features_in_))
        p = self._trial(np.stack([0 * ramp, ramp, -ramp]))
        # Rows that are not normalised may exceed 1 a little.
        is_possible = bool(((p >= 0) & (p <= 2)).all())
        return None if is_possible else "it predicts no probabilities"

    def _trial(self, z: Array) -> Array:
        """The probabilities at logits [3, C], to see whether values from a file can be used."""
        return self._predicted(z)
