"""Calibrators of other packages with our interface.

All come from probmetrics, which has beta calibration from betacal, Venn-Abers from venn-abers and
centred isotonic regression from cir-model. The extra `peers` installs them; docs/methods/peers.md
says how to run them.
"""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError, reason_of
from utility_calibration.metrics.kernels.softmax import softmax

from .base import Calibrator
from .heavy_imports import require

MODULE = "probmetrics.calibrators"
SEED = 0  # of PyTorch during a fit; intra-order-preserving draws numbers, as a network
INSTALL = "--constraint requirements.lock --requirement requirements-peers.txt"


@dataclass(frozen=True)
class Peer:
    """A class of probmetrics, the packages that it needs, and the module that has it."""

    name: str
    one_vs_rest: bool = False
    """It is for two classes: one is fitted per class against all others, then rows are divided by
    their sums (`MulticlassOneVsRestCalibrator`)."""
    needs: tuple[str, ...] = ("probmetrics",)
    module: str = MODULE


PEERS: dict[str, Peer] = {
    "ensemble_temperature": Peer("ETSCalibrator"),
    "beta": Peer("BetacalCalibrator", True, ("probmetrics", "betacal")),
    "venn_abers": Peer("BinaryVennAbersCalibrator", True, ("probmetrics", "venn_abers")),
    "histogram": Peer("BinaryHistogramBinningCalibrator", True),
    "spline": Peer("CDFSplineCalibrator", True),
    "centred_isotonic": Peer(
        "CenteredIsotonicRegressionCalibrator", True, ("probmetrics", "cir_model")
    ),
    "order_preserving": Peer("IntraOrderPreservingCalibrator", module=f"{MODULE}.orderpreserving"),
}


class PeerCalibration(Calibrator):
    """A calibrator of another package, fitted on softmax(z) and applied to it.

    Only pickle could store a package's object. So `save` stores the calibration points, and a
    loaded calibrator fits again when it first predicts, from the same SEED and with the same
    versions of the packages only. After `cache_predictions` the same points need no other fit.

    Args:
        method: ensemble_temperature (Zhang et al. 2020), beta (Kull et al. 2017), venn_abers (Vovk
            et al. 2015), histogram (Zadrozny and Elkan 2001), spline (Gupta et al. 2021),
            centred_isotonic (Oron and Flournoy 2017) or order_preserving (Rahimi et al. 2020).
        options: arguments of the package's class; None means its defaults.

    Attributes:
        logits_, labels_: the calibration points, [n, C] and [n].
        versions_: [packages], as `name version`.
        cached_, cached_for_: float64 [m, C], the cached predictions, and their logits' digest.

    Raises:
        MissingResource: a package is not installed.
        InputError: `method` is not in `PEERS`, the class does not have these `options`, or the
            package cannot fit these points: beta calibration needs a point of each class.
    """

    _model: Any = None  # the package's fitted object; None after `load`

    def __init__(self, method: str, options: Mapping[str, Any] | None = None) -> None:
        self.method = method
        self.options = options

    def _fit(self, logits: Array, labels: Array) -> None:
        self.logits_: NDArray[Any] = np.array(logits)
        self.labels_: NDArray[np.int64] = np.array(labels)
        self._model, self.versions_ = self._fit_model(), np.array(self._versions())
        self.cached_: NDArray[np.float64] = np.empty((0, logits.shape[1]))
        self.cached_for_ = ""

    def cache_predictions(self, logits: Array) -> None:
        """Store the predictions for `logits` [m, C], in the file of `save` as well."""
        self.cached_, self.cached_for_ = self.predict_proba(logits), _digest(logits)

    def _trial(self, z: Array) -> Array:
        return np.ones_like(z)  # a prediction may fit again, which takes long

    def _predict_proba(self, logits: Array) -> Array:
        if self._model is None:
            if _digest(logits) == self.cached_for_:
                return self.cached_
            if (here := self._versions()) != list(self.versions_):
                raise InputError(
                    f"fitted with {', '.join(self.versions_)}, installed is {', '.join(here)}",
                    field=self.method,
                    fixes="fit and save it again",
                )
            self._model = self._fit_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = self._model.predict_proba(softmax(logits))
        p = np.asarray(p, dtype=np.float64)  # from float32 rows may miss 1
        return p / p.sum(axis=1, keepdims=True)

    def _to_module(self, dtype: Any) -> Any:
        raise InputError("a calibrator of another package cannot be exported", field=self.method)

    def _fit_model(self) -> Any:
        import torch

        peer = self._peer()
        for package in peer.needs:
            require(package, INSTALL)
        library, module = require(MODULE, INSTALL), require(peer.module, INSTALL)
        try:
            model = getattr(module, peer.name)(**(self.options or {}))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{peer.name} does not take them ({error})", field="options"
            ) from error
        if peer.one_vs_rest:
            model = library.MulticlassOneVsRestCalibrator(model)
        x = softmax(self.logits_)  # float64: rows sum to one
        try:
            with warnings.catch_warnings(), torch.random.fork_rng(devices=()), torch.enable_grad():
                warnings.simplefilter("ignore")  # betacal changes the filters for the whole process
                torch.manual_seed(SEED)
                return model.fit(x, self.labels_)
        except ValueError as error:
            absent = np.setdiff1d(np.arange(x.shape[1]), self.labels_)
            raise InputError(
                f"{self.method} cannot be fitted; classes without a sample: "
                f"{', '.join(map(str, absent)) or 'none'} ({reason_of(error)})",
                field="labels",
            ) from error

    def _peer(self) -> Peer:
        if self.method not in PEERS:
            raise InputError(f"{self.method!r} is none of {', '.join(PEERS)}", field="method")
        return PEERS[self.method]

    def _versions(self) -> list[str]:
        return [f"{package} {version(package)}" for package in self._peer().needs]


def _digest(logits: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(logits).tobytes()).hexdigest()
