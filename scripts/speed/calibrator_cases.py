"""Cases about calibrators: fits to the calibration part, and a step of patching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

import calibrators
from calibrators import reference
from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.audit import StandardFamilies
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent
from metrics.reference import negative_log_likelihood
from pipeline.sources.heavy_imports import require
from scripts.speed.case import OURS, PLAIN, SEED, Answer, Case, Data, Size

LIKELIHOOD = 5e-7
"""A mean NLL may be worse than the reference's by this much, the resolution of float32 logits."""
ODIR_PER_ENTRY, L2_PER_CLASS = 0.01, 0.001
"""Penalties of the Dirichlet case, as large as those that tuning finds, for any C."""
STEPS = 5
SMALL, LARGE = Size(7000, 100), Size(35_000, 1000)


def _fitted(make: Callable[[], Any]) -> Callable[[Data], Any]:
    return lambda data: make().fit(data.logits, data.labels)


def _nll(data: Data, result: Any) -> Answer:
    """The mean NLL on the points of the fit: of a calibrator, or of logits [n, C]."""
    if isinstance(result, np.ndarray):
        p = softmax(result, axis=1)
    else:
        p = torch.as_tensor(result.predict_proba(data.logits)).cpu().numpy()
    return {"nll": np.array(negative_log_likelihood(p, data.plain[1]))}


def _plain_isotonic(data: Data) -> Any:
    from sklearn.isotonic import IsotonicRegression

    p, labels = data.plain
    return [
        IsotonicRegression(out_of_bounds="clip").fit(p[:, c], 1.0 * (labels == c)).predict(p[:, c])
        for c in range(p.shape[1])
    ]


def _mapped(data: Data, result: Any) -> Answer:
    if isinstance(result, list):
        return {"mapped": np.column_stack(result)}
    raw = result.set_params(normalize=False).predict_proba(data.logits)
    return {"mapped": torch.as_tensor(raw).cpu().numpy()}


def _penalties(data: Data) -> dict[str, Any]:
    classes = data.size.classes
    return {"odir": ODIR_PER_ENTRY * classes * (classes - 1), "l2": L2_PER_CLASS * classes}


def _penalised(data: Data, result: Any) -> Answer:
    """The objective of Dirichlet calibration at W, b [C, C + 1] or at a fitted calibrator."""
    if not isinstance(result, np.ndarray):
        parts = [result.matrix_, result.intercept_]
        result = np.column_stack([torch.as_tensor(part).cpu().numpy() for part in parts])
    loss = reference.penalised_loss(*data.plain_logits, result, *_penalties(data).values())
    return {"objective": np.array(loss)}


def _probmetrics_temperature(data: Data) -> NDArray[Any]:
    """Its bisection, the default; returns the calibrated logits."""
    calibrator = require("probmetrics.calibrators").TemperatureScalingCalibrator()
    logits = require("probmetrics.distributions").CategoricalLogits(data.logits)
    return np.asarray(data.plain_logits[0] * calibrator.fit_torch(logits, data.labels).invtemp_)


class Patching:
    """A trajectory of patching that can be continued."""

    def __init__(self, data: Data) -> None:
        self.state = PatchedForecast(data.p, data.labels)
        size = data.size
        self.auditor = StandardFamilies(size.utilities, SEED)
        self.algorithm = Algorithm1(self.state, self.auditor, ProjectedDescent(1.0), tolerance=0.0)
        self.errors: list[float] = []

    def steps(self) -> float:
        """Audit, search the step, move the points, STEPS times; the error of the first audit."""
        for _ in range(STEPS):
            patch = self.algorithm.round()
            if patch is None:
                raise RuntimeError("no patch was found")
            self.errors.append(patch.error)
        return self.errors[0]

    def sorted_audit(self) -> float:
        """The largest UC by sorting every utility."""
        state = self.state
        tensors = [state.probabilities, state.top_sums, state.labels, state.ranks]
        sampled = self.auditor.draw(0, state.probabilities.shape[1])
        arrays = [np.ascontiguousarray(t.cpu().numpy()) for t in (*tensors, *sampled)]
        return float(reference.full_audit(*arrays))


CALIBRATOR_CASES = (
    Case(
        "temperature",
        "Temperature scaling, fit",
        {
            PLAIN: lambda data: data.plain_logits[0] * reference.temperature(*data.plain_logits),
            OURS: _fitted(calibrators.TemperatureScaling),
            "probmetrics": _probmetrics_temperature,
        },
        [SMALL, LARGE],
        LIKELIHOOD,
        answer=_nll,
        no_worse=True,
        note="float32 logits; the answer is the NLL; plain: SciPy's Brent",
    ),
    Case(
        "isotonic",
        "Isotonic one-vs-all, fit",
        {
            "scikit-learn": _plain_isotonic,
            OURS: _fitted(calibrators.IsotonicCalibration),
        },
        [SMALL, LARGE],
        answer=_mapped,
        note="scikit-learn: a loop over classes, with the mapped points; ours: with the softmax",
    ),
    Case(
        "dirichlet",
        "Dirichlet calibration, one fit",
        {
            PLAIN: lambda data: reference.dirichlet(*data.plain_logits, *_penalties(data).values()),
            OURS: lambda data: calibrators.DirichletCalibration(**_penalties(data)).fit(
                data.logits, data.labels
            ),
        },
        [Size(7000, 10)],
        LIKELIHOOD,
        answer=_penalised,
        no_worse=True,
        note="the answer is the penalised NLL; plain: SciPy's L-BFGS-B",
    ),
    Case(
        "patching",
        "Patching, one step",
        {PLAIN: Patching.sorted_audit, OURS: Patching.steps},
        [Size(7000, 100, 264), Size(35_000, 1000, 264)],
        prepare=Patching,
        steps=STEPS,
        note="plain: the audit alone, a sort per utility; ours: the whole step, that is audit, "
        "line search and projection, mean over 5 steps, each run goes on from the last",
    ),
)
