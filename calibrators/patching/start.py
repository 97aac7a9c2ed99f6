"""Where patching starts: from another calibrator's probabilities.

Patches are fitted on the same calibration points as that calibrator. One parameter (temperature)
fits them no better than new ones; with more, patches would look at residuals that are too small.
Such starts are cross-fitted: each fifth of the points is predicted by a fit on the others.

Which start is best depends on the classifier. `auto` takes the one whose cross-fitted probabilities
have the smallest mean NLL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from sklearn.base import clone
from torch import Tensor

from calibrators.base import Calibrator, Uncalibrated
from calibrators.dirichlet.calibrator import DirichletCalibration
from calibrators.structured import StructuredMatrixScaling
from calibrators.temperature import TemperatureScaling
from calibrators.vector import VectorScaling
from metrics.scores import negative_log_likelihood
from metrics.validation import InputError

Start = Literal["auto", "softmax", "temperature", "vector", "structured", "dirichlet"]
CANDIDATES: tuple[Start, ...] = ("temperature", "vector", "structured", "dirichlet")
"""What `auto` chooses from; the first one among equals."""
FOLDS = 5
PREFIX = "start_"
KIND = "start_kind_"
COMMON = ("classes_", "n_features_in_", "tuning_log_")
"""What the patching calibrator has itself."""


def check_start(start: Any, allowed: Any = Start) -> None:
    """Raise `InputError` unless `start` is one of the names of the literal type `allowed`."""
    names = get_args(allowed)
    if start not in names:
        raise InputError(f"start: {start!r}, expected {', '.join(names[:-1])} or {names[-1]}")


def fit_start(start: Start, logits: Tensor, labels: Tensor, seed: int) -> tuple[Calibrator, Tensor]:
    """Return the start, fitted on all points, and what patches are fitted on: float64 [n, C].

    Dirichlet's penalties are tuned once, on all points; `seed` is of that and of the fifths.
    """
    if start == "auto":
        fits = [fit_start(name, logits, labels, seed) for name in CANDIDATES]
        return min(fits, key=lambda fit: negative_log_likelihood(fit[1], labels))
    if start == "softmax":
        return Uncalibrated().fit(logits, labels), _softmax(logits)
    if start == "temperature":
        simple = TemperatureScaling().fit(logits, labels)
        return simple, simple.predict_proba(logits)
    if start == "dirichlet":
        tuned = DirichletCalibration(seed=seed).fit(logits, labels)
        again = DirichletCalibration(odir=tuned.odir_, l2=tuned.l2_)
        return tuned, _cross_fitted(again, logits, labels, seed)
    flexible = VectorScaling() if start == "vector" else StructuredMatrixScaling()
    return flexible.fit(logits, labels), _cross_fitted(flexible, logits, labels, seed)


def _cross_fitted(calibrator: Calibrator, logits: Tensor, labels: Tensor, seed: int) -> Tensor:
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    order = order.to(logits.device)
    probabilities = logits.new_empty(logits.shape, dtype=torch.float64)
    for fold in range(FOLDS):
        held = order[fold::FOLDS]
        kept = torch.cat([order[other::FOLDS] for other in range(FOLDS) if other != fold])
        fitted = clone(calibrator).fit(logits[kept], labels[kept])
        probabilities[held] = fitted.predict_proba(logits[held])
    return probabilities


def stored(start: Calibrator) -> dict[str, Any]:
    """Return what the start is and what it learned, under names that begin with `start_`."""
    learned = {name: value for name, value in vars(start).items() if name.endswith("_")}
    return {KIND: type(start).__name__} | {
        PREFIX + name: value for name, value in learned.items() if name not in COMMON
    }


def restored(start: Start, attributes: Mapping[str, Any]) -> Calibrator:
    """Return the start whose `stored` values are among `attributes`.

    Files of earlier versions do not say which start it was; there it is the one asked for.
    """
    kinds: dict[str, type[Calibrator]] = {
        "softmax": Uncalibrated,
        "temperature": TemperatureScaling,
        "vector": VectorScaling,
        "structured": StructuredMatrixScaling,
        "dirichlet": DirichletCalibration,
    }
    by_name = {kind.__name__: kind for kind in kinds.values()}
    kind = by_name[str(attributes[KIND])] if KIND in attributes else kinds[start]
    calibrator = kind()
    for name, value in attributes.items():
        if name.startswith(PREFIX) and name != KIND:
            setattr(calibrator, name.removeprefix(PREFIX), value)
    return calibrator


def predicted(start: Start, attributes: Mapping[str, Any], logits: Tensor) -> Tensor:
    """Return what the start whose `stored` values are among `attributes` predicts."""
    return (
        _softmax(logits)
        if start == "softmax"
        else restored(start, attributes)._predict_proba(logits)
    )


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits.to(torch.float64), dim=1)
