"""What is computed on the CPU and on a CUDA device, to be compared: one list for all devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from calibrators import (
    DirichletCalibration,
    IsotonicCalibration,
    LogitShiftPatching,
    TemperatureScaling,
    Uncalibrated,
    UtilityPatching,
    VectorScaling,
)
from calibrators.base import Calibrator
from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent
from metrics import (
    ClassWise,
    Decision,
    DiscountedCumulativeGain,
    FunctionUtility,
    GainMatrix,
    Linear,
    Rank,
    Similarity,
    TopClass,
    TopK,
    UtilityClass,
    accuracy,
    binned_class_wise_error,
    binned_top_class_error,
    brier_score,
    ecdf,
    negative_log_likelihood,
    scorecard,
    utility_calibration,
    worst_interval,
)
from metrics.forecast import Forecast
from pipeline.scoring.dynamics_study import UserAuditor, noise_errors, sample_users

Answer = dict[str, Any]
"""Tensors, which must lie on the device of the input, and numbers or arrays, by name."""
Case = Callable[[Tensor, Tensor], Answer]
"""From inputs [n, C] and labels [n] on a device: logits for calibrators, else probabilities."""

POINTS, CLASSES = 240, 7

SIMILARITY = 0.5 + 0.5 * np.eye(CLASSES)

CALIBRATORS: dict[str, Calibrator] = {
    "uncalibrated": Uncalibrated(),
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "isotonic": IsotonicCalibration(),
    "isotonic, rows as they come": IsotonicCalibration(normalize=False),
    "isotonic, global": IsotonicCalibration(mode="global"),
    "Dirichlet": DirichletCalibration(odir=1.0, l2=0.1),
    "Dirichlet, tuned": DirichletCalibration(tuning_runs=5),
    "Dirichlet, on logits": DirichletCalibration(on="logits", odir=0.1, l2=0.1),
    "patching, tuned": UtilityPatching(tuning_runs=3, max_steps=15, sampled_count=16),
    "patching, tuned on Brier": UtilityPatching(
        step_size=1.0, sampled=False, tuning_runs=2, max_steps=8, objective="brier"
    ),
    "patching, tuned on NLL, theory's steps": UtilityPatching(
        tuning_runs=3, max_steps=10, sampled_count=8, objective="nll", line_search="theory"
    ),
    "patching, sampled utilities": UtilityPatching(
        step_size=1.0, steps=15, sampled=True, sampled_count=20
    ),
    "patching from temperature": UtilityPatching(
        step_size=1.0, steps=8, sampled=False, start="temperature"
    ),
    "logit shift": LogitShiftPatching(max_steps=15),
    "logit shift, sampled utilities, cross-fitted start": LogitShiftPatching(
        start="vector", steps=12, sampled_count=20
    ),
}

_losses = np.random.default_rng(1).random((3, CLASSES, 4))
UTILITIES: dict[str, UtilityClass] = {
    "TopClass": TopClass(),
    "ClassWise": ClassWise(),
    "TopK": TopK(),
    "Rank": Rank.sample(9, CLASSES, 0),
    "Linear": Linear.sample(9, CLASSES, 0),
    "DiscountedCumulativeGain": DiscountedCumulativeGain(),
    "Similarity": Similarity(SIMILARITY),
    "Decision": Decision(_losses),
    "aligned gains": GainMatrix.sample_aligned(9, CLASSES, 0),
    "misaligned gains": GainMatrix.sample_misaligned(9, CLASSES, 0, subsets=3),
    "gains as matrices": GainMatrix(GainMatrix.sample_aligned(3, CLASSES, 1).matrix(0)),
    "a function": FunctionUtility(lambda p: p.sqrt()),
}

MEASURES: dict[str, Callable[..., Any]] = {
    "accuracy": accuracy,
    "Brier score": brier_score,
    "NLL": negative_log_likelihood,
    "binned class-wise error": binned_class_wise_error,
    "binned class-wise error, equal width, prior": partial(
        binned_class_wise_error, scheme="equal_width", weights="prior"
    ),
    "binned top-class error": binned_top_class_error,
    "binned top-class error, equal width": partial(binned_top_class_error, scheme="equal_width"),
}


def _calibrate(calibrator: Calibrator, logits: Tensor, labels: Tensor) -> Answer:
    """The labels may also come from the CPU, and what was fitted there predicts anywhere."""
    fitted = clone(calibrator).fit(logits, labels)
    again = clone(calibrator).fit(logits, labels.cpu())
    return {
        "probabilities": fitted.predict_proba(logits),
        "with labels from the CPU": again.predict_proba(logits),
        "predicted on the CPU": fitted.predict_proba(logits.cpu()).numpy(),
        "classes": fitted.predict(logits),
        "score": fitted.score(logits, labels),
    }


def _errors_and_worst(utilities: UtilityClass, p: Tensor, labels: Tensor) -> Answer:
    errors = utilities.calibration_errors(p, labels)
    index, interval = utilities.worst(p, labels)
    return {
        "errors": errors,
        "with labels from the CPU": utilities.calibration_errors(p, labels.cpu()),
        "by outcome": utilities.outcome_utilities(Forecast(p), index),
        "worst": index,
        **interval._asdict(),
    }


def _many_possible_choices(p: Tensor, labels: Tensor) -> Answer:
    """Forecasts so flat that users could choose among more than `FEW_CLASSES` classes."""
    copies = 9
    spread = (0.1 * p.repeat(1, copies) + 0.9 / CLASSES) / copies
    users = GainMatrix.sample_aligned(5, copies * CLASSES, 0)
    return _errors_and_worst(users, spread, labels)


def _with_parameters_there(p: Tensor, labels: Tensor) -> Answer:
    """Utilities made from tensors on the device, applied to forecasts there and on the CPU."""
    payoffs = Linear.sample(4, CLASSES, 2).matrix.to(p.device)
    gains = GainMatrix.sample_aligned(2, CLASSES, 3)
    matrices = torch.stack([gains.matrix(index) for index in range(2)])
    made = [
        Linear(payoffs),
        Rank(payoffs),
        Similarity(torch.from_numpy(SIMILARITY).to(p.device)),
        Decision(torch.from_numpy(_losses).to(p.device)),
        GainMatrix(matrices.to(p.device)),
    ]
    answer = Answer()
    for utilities in made:
        name = type(utilities).__name__
        answer[f"{name}, forecast there"] = utilities.calibration_errors(p, labels)
        answer[f"{name}, forecast on the CPU"] = utilities.calibration_errors(
            p.cpu().numpy(), labels.cpu().numpy()
        )
        answer[f"{name}, worst"] = utilities.worst(p, labels)[0]
    return answer


def _with_ties(case: Case, p: Tensor, labels: Tensor) -> Answer:
    return case(p[torch.arange(len(p), device=p.device) // 2], labels)


def _measure(function: Callable[..., Any], p: Tensor, labels: Tensor) -> Answer:
    return {"value": function(p, labels), "with labels from the CPU": function(p, labels.cpu())}


def _single_utility(p: Tensor, labels: Tensor) -> Answer:
    highest, predicted = p.max(dim=1)
    hit = predicted == labels
    return {
        "error": utility_calibration(highest, hit),
        "with outcomes from the CPU": utility_calibration(highest, hit.cpu()),
        "several": utility_calibration(p.T, labels == torch.arange(CLASSES).to(p.device)[:, None]),
        **worst_interval(highest, hit)._asdict(),
    }


def _scorecard(p: Tensor, labels: Tensor, **options: Any) -> Answer:
    repetitions = {"floor_repetitions": 5, "bootstrap_repetitions": 4}
    card = scorecard(p, labels, utilities=20, **repetitions, **options)
    floors = {f"{key} floor": [*floor.values()] for key, floor in card.noise_floor.items()}
    worst = {f"{key} worst": [*found.values()] for key, found in card.worst.items()}
    bounds = {f"{key} certificate": [*found] for key, found in card.certificates.items()}
    return {**card.metrics, **floors, **worst, **bounds, **card.ecdf, **card.draws}


def _rows_as_they_come(p: Tensor, labels: Tensor) -> Answer:
    """As one-vs-all isotonic regression leaves them: sums other than one, rows of zeros."""
    rows = torch.where(p < 0.2, 0.0, p)
    rows[:3] = 0
    return _scorecard(rows, labels, rows_sum_to_one=False)


def _dynamics(family: str, p: Tensor, labels: Tensor) -> Answer:
    """Three rounds of auditing users of a family and patching for the worst one."""
    options = {"utilities": 12, "seed": 0, "aligned": {}, "misaligned": {"subsets": 3}}
    state, update, answer = PatchedForecast(p, labels), ProjectedDescent(1.0), Answer()
    auditor = UserAuditor(family, options)
    algorithm = Algorithm1(state, auditor, update, tolerance=0.0)
    for number, patch in zip(range(3), algorithm, strict=False):
        users = sample_users(family, CLASSES, number, options)
        answer[f"errors {number}"] = auditor.errors
        answer[f"noise {number}"] = noise_errors(state, users, 7, number)
        answer[f"patch {number}"] = [patch.utility.index, *patch[1:]]
        answer[f"Brier score {number}"] = update.loss(state)
    return {**answer, "probabilities": state.probabilities}


def _on_probabilities() -> Iterator[tuple[str, Case]]:
    for name, utilities in UTILITIES.items():
        case = partial(_errors_and_worst, utilities)
        yield name, case
        yield f"{name}, with ties", partial(_with_ties, case)
    yield "gains with many possible choices", _many_possible_choices
    yield "utilities with parameters on the device", _with_parameters_there
    for name, function in MEASURES.items():
        yield name, partial(_measure, function)
    yield "a single utility", _single_utility
    yield "eCDF", lambda p, labels: {"steps": ecdf(ClassWise().calibration_errors(p, labels))}
    yield "scorecard", _scorecard
    yield "scorecard with labels from the CPU", lambda p, labels: _scorecard(p, labels.cpu())
    yield "scorecard with similarity", partial(_scorecard, similarity=SIMILARITY)
    yield "scorecard in batches", partial(_scorecard, utility_batch=POINTS // 2)
    yield "scorecard of rows that do not sum to one", _rows_as_they_come
    for family in ("aligned", "misaligned"):
        yield f"dynamics of {family} users", partial(_dynamics, family)


ON_LOGITS: dict[str, Case] = {
    name: partial(_calibrate, calibrator) for name, calibrator in CALIBRATORS.items()
}
ON_PROBABILITIES: dict[str, Case] = dict(_on_probabilities())
