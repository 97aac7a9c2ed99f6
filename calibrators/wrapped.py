"""A calibrator of another package, or a person's own, with the interface of ours."""

import copy
import hashlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from utility_calibration.metrics.arrays import Array, as_array
from utility_calibration.metrics.errors import InputError, reason_of
from utility_calibration.metrics.kernels.softmax import softmax

from .base import Calibrator
from .heavy_imports import require
from .inputs import logits_of

SEED = 0  # of PyTorch's random numbers during a fit
INSTALL = "--requirement requirements-peers.txt"


@dataclass(eq=False, repr=False)
class Wrapped(Calibrator):
    """Any object with `fit(p, y)` and `predict_proba(p)`, fitted on p = softmax(z).

    It gets float64 probabilities [n, C] and class numbers [n], both NumPy arrays. What it answers
    is divided by the sums of the rows. Only pickle could write the object to a file, and files here
    never hold pickle. So a file holds the predictions for the points of `cache_predictions` alone,
    and a loaded calibrator answers for no others.

    >>> from sklearn.linear_model import LogisticRegression
    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> calibrator = Wrapped(LogisticRegression())
    >>> calibrator.fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.54, 0.46]])

    Args:
        estimator: the object, of which a copy is fitted. Or a mapping from which `fit` makes it, as
            Hydra's: `{"_target_": "package.Class", "argument": …}`, where arguments may be such
            mappings, too.
        inputs: what X is.

    Attributes:
        cached_, cached_for_: float64 [m, C], the cached predictions, and the digest of their
            logits.

    Raises:
        MissingResource: the package of the mapping is not installed.
        InputError: the object cannot be made, or does not fit these points.
    """

    estimator: object
    _model = cast(Any, None)  # the fitted object; None after `load`

    def _fit(self, logits: Array, labels: Array) -> None:
        model: Any = (
            made(self.estimator)
            if isinstance(self.estimator, Mapping)
            else copy.deepcopy(self.estimator)
        )
        if not (hasattr(model, "fit") and hasattr(model, "predict_proba")):
            raise InputError(
                f"a {type(model).__name__} has no fit or no predict_proba",
                field="estimator",
                fixes="give an object with both, or a mapping with _target_",
            )
        with warnings.catch_warnings(), seeded():
            warnings.simplefilter("ignore")  # some packages change the filters for all others
            try:
                model.fit(softmax(logits), labels)
            except ModuleNotFoundError as error:
                require(str(error.name), INSTALL)  # it says how to install the package
                raise
            except ValueError as error:
                name = type(model).__name__
                message = f"{name} cannot be fitted to these points ({reason_of(error)})"
                raise InputError(message, field="estimator") from error
        self._model = model
        self.cached_, self.cached_for_ = np.empty((0, logits.shape[1])), ""

    def cache_predictions(self, X: ArrayLike) -> None:
        """Store the predictions for X [m, C], which `save` then writes."""
        self.cached_ = as_array(self.predict_proba(X))
        self.cached_for_ = digest(logits_of(X, self.inputs))

    def save(self, path: str | Path) -> Path:
        """Write the cached predictions, but not the object; see the class."""
        written = copy.copy(self)
        written.estimator = None
        return Calibrator.save(written, path)

    def _predicted(self, z: Array, **named: Array) -> Array:
        if self._model is None and digest(z) == getattr(self, "cached_for_", ""):
            return np.array(self.cached_)  # a copy, which its owner may change
        return super()._predicted(z)

    def _predict_proba(self, logits: Array) -> Array:
        if self._model is None:
            raise InputError(
                "its file has predictions for the cached points only",
                field="estimator",
                fixes="fit it again",
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = np.asarray(self._model.predict_proba(softmax(logits)), dtype=np.float64)
        total = p.sum(axis=1, keepdims=True)  # from float32 rows may miss 1
        return np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)

    def _trial(self, z: Array) -> Array:
        return np.ones_like(z)  # a file has no object that could predict

    def _to_module(self, dtype: Any) -> Any:
        raise InputError("an object of another package cannot be exported", field="estimator")


def made(recipe: Mapping[str, Any]) -> Any:
    """Return the object of a mapping with `_target_`, as Hydra makes it; `InputError` if none."""
    if "_target_" not in recipe:
        raise InputError("no _target_", field="estimator", fixes="name the class: package.Class")
    module, _, name = str(recipe["_target_"]).rpartition(".")
    arguments = {}
    for key, value in recipe.items():
        if key == "_target_":
            continue
        is_recipe = isinstance(value, Mapping) and "_target_" in value
        arguments[key] = made(value) if is_recipe else value
    try:
        return getattr(require(module, INSTALL), name)(**arguments)
    except (AttributeError, TypeError, ValueError) as error:
        message = f"{recipe['_target_']} cannot be made ({reason_of(error)})"
        raise InputError(message, field="estimator") from error


@contextmanager
def seeded() -> Iterator[None]:
    """Let torch, if somebody has imported it, draw the same random numbers inside every time."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(SEED)
        yield


def digest(logits: Array) -> str:
    """Return a checksum of logits [n, C], by which the cached points are known again."""
    return hashlib.sha256(np.ascontiguousarray(logits).tobytes()).hexdigest()
