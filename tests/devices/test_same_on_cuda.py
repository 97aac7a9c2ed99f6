"""Calibrators and metrics give on a CUDA device what they give on the CPU, and leave it there.

The device is the machine's GPU, or an emulated one where there is none.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor

from tests.devices.emulated_cuda import emulated_cuda
from utility_calibration import calibrators
from utility_calibration import metrics as m
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.patching.algorithm import Algorithm1
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.update import ProjectedDescent
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.pipeline.harness.units import composed, resolved
from utility_calibration.pipeline.scoring.dynamics_study import (
    UserAuditor,
    noise_errors,
    sample_users,
)

Answer = dict[str, Any]
"""Tensors, which must lie on the device of the input, and numbers or arrays, by name."""

POINTS, CLASSES = 240, 7
REAL = torch.cuda.is_available()
TOLERANCE = 1e-9
FITTED = 1e-4 if REAL else TOLERANCE
"""A GPU adds float32 numbers in another order, and fits end within their tolerance."""

SIMILARITY = 0.5 + 0.5 * np.eye(CLASSES)
LOSSES = np.random.default_rng(1).random((3, CLASSES, 4))

CALIBRATORS: dict[str, Calibrator] = {
    "uncalibrated": calibrators.Uncalibrated(),
    "temperature": calibrators.TemperatureScaling(),
    "vector": calibrators.VectorScaling(),
    "isotonic": calibrators.IsotonicCalibration(),
    "Dirichlet, tuned": calibrators.DirichletCalibration(tuning_runs=3),
    "structured matrix": calibrators.StructuredMatrixScaling(),
    "patching, tuned": calibrators.UtilityPatching(tuning_runs=2, max_steps=8, sampled_count=16),
    "patching, theory's steps": calibrators.UtilityPatching(
        step_size=1.0, steps=8, sampled_count=8, line_search="theory", start="temperature"
    ),
    "logit shift": calibrators.LogitShiftPatching("temperature", steps=8, sampled_count=20),
    "pooled": calibrators.LogitShiftPatching(max_steps=8),
}
UTILITIES: dict[str, m.UtilityClass] = {
    "TopClass": m.TopClass(),
    "ClassWise": m.ClassWise(),
    "TopK": m.TopK(),
    "Rank": m.Rank.sample(9, CLASSES, 0),
    "Linear": m.Linear.sample(9, CLASSES, 0),
    "DiscountedCumulativeGain": m.DiscountedCumulativeGain(),
    "Similarity": m.Similarity(SIMILARITY),
    "Decision": m.Decision(LOSSES),
    "aligned gains": m.GainMatrix.sample_aligned(9, CLASSES, 0),
    "misaligned gains": m.GainMatrix.sample_misaligned(9, CLASSES, 0, subsets=3),
    "a function": m.FunctionUtility(lambda p: p.sqrt()),
}


HERE, PLACES = torch.arange(4.0), torch.tensor([2, 0])
MISTAKES: dict[str, Callable[[Tensor], object]] = {
    "taking its NumPy view": lambda x: x.numpy(),
    "adding a CPU tensor to it": lambda x: x + HERE,
    "masking it by a CPU mask": lambda x: torch.where(HERE > 1, x, 0.0),
    "stacking its number with a CPU number": lambda x: torch.stack([x[0], HERE[0]]),
    "indexing a CPU tensor by it": lambda x: HERE[x.long()],
    "assigning CPU values at places of it": lambda x: x.__setitem__(PLACES, HERE[:2]),
    "drawing it by a CPU generator": lambda x: x.uniform_(generator=torch.Generator()),
}


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    """Let "cuda" mean the GPU or an emulated one."""
    with nullcontext() if REAL else emulated_cuda():
        yield


@pytest.fixture(scope="module")
def data() -> tuple[Tensor, Tensor]:
    """Logits float32 [n, C] of a classifier that is right more often than not, and labels."""
    random = np.random.default_rng(0)
    labels = random.integers(CLASSES, size=POINTS)
    truth = np.eye(CLASSES)[labels]
    logits = random.normal(size=truth.shape) + 3 * truth * random.random((POINTS, 1))
    return torch.from_numpy(logits.astype(np.float32)), torch.from_numpy(labels)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_on_the_emulated_device_as_on_a_gpu(mistake: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"cuda|device"):
        MISTAKES[mistake](HERE.to("cuda"))


def assert_same(computed: Answer, expected: Answer, tolerance: float) -> None:
    assert expected.keys() == computed.keys()
    for name, value in expected.items():
        answer = computed[name]
        if isinstance(value, Tensor):
            assert answer.device.type == "cuda", name
            assert answer.dtype == value.dtype, name
            answer, value = answer.cpu().numpy(), value.numpy()
        np.testing.assert_allclose(answer, value, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_calibrator_gives_the_same_on_the_device(
    name: str, data: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    """What was fitted on one device predicts on any, and so does what was stored."""
    logits, labels = data
    there = logits.to("cuda")
    here = clone(CALIBRATORS[name]).fit(logits, labels)
    fitted = clone(CALIBRATORS[name]).fit(there, labels.to("cuda"))
    expected = {"p": here.predict_proba(logits), "classes": here.predict(logits)}
    computed = {"p": fitted.predict_proba(there), "classes": fitted.predict(there)}
    assert_same(computed, expected, FITTED)
    loaded = Calibrator.load(fitted.save(tmp_path / "fitted.npz"))
    assert torch.equal(loaded.predict_proba(there), computed["p"])
    assert torch.equal(loaded.predict_proba(logits), fitted.predict_proba(logits))
    assert torch.equal(there.cpu(), logits)  # the input is as it was


# ---- Metrics: each case computes from probabilities [n, C] and labels [n] on one device ----------


def errors_and_worst(utilities: m.UtilityClass, p: Tensor, labels: Tensor) -> Answer:
    index, interval = utilities.worst(p, labels)
    return {
        "errors": utilities.calibration_errors(p, labels),
        "with labels from the CPU": utilities.calibration_errors(p, labels.cpu()),
        "by outcome": utilities.outcome_utilities(Forecast(p), index),
        "worst": index,
        **interval._asdict(),
    }


def whole_scorecard(p: Tensor, labels: Tensor, **options: Any) -> Answer:
    repetitions = {"floor_repetitions": 5, "bootstrap_repetitions": 4}
    card = m.scorecard(p, labels, utilities=20, **repetitions, **options)
    floors = {f"{key} floor": [*floor.values()] for key, floor in card.noise_floor.items()}
    worst = {f"{key} worst": [*values.values()] for key, values in card.worst.items()}
    bounds = {f"{key} certificate": [*bound] for key, bound in card.certificates.items()}
    return {**card.metrics, **floors, **worst, **bounds, **card.ecdf, **card.draws}


def dynamics(family: str, p: Tensor, labels: Tensor) -> Answer:
    """Three rounds of auditing users of a family and patching for the worst one."""
    settings = resolved(composed(["benchmark=digits", "calibrator=uncalibrated"])).dynamics
    options = replace(settings, utilities=12, aligned={}, misaligned={"subsets": 3})
    state, update, answer = PatchedForecast(p, labels), ProjectedDescent(1.0), Answer()
    auditor = UserAuditor(family, options)
    algorithm = Algorithm1(state, auditor, update, tolerance=0.0)
    for number, patch in zip(range(3), algorithm, strict=False):
        users = sample_users(family, CLASSES, number, options)
        answer[f"errors {number}"] = auditor.errors
        answer[f"noise {number}"] = noise_errors(state, users, 7, number)
        answer[f"patch {number}"] = [patch.utility.index, *patch[1:]]
        answer[f"Brier score {number}"] = float(state.losses("brier").mean())
    return {**answer, "probabilities": state.probabilities}


METRICS: dict[str, Callable[[Tensor, Tensor], Answer]] = {
    **{name: partial(errors_and_worst, case) for name, case in UTILITIES.items()},
    "scorecard": partial(whole_scorecard, similarity=SIMILARITY, utility_batch=POINTS // 2),
    "dynamics of aligned users": partial(dynamics, "aligned"),
    "dynamics of misaligned users": partial(dynamics, "misaligned"),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_gives_the_same_on_the_device(name: str, data: tuple[Tensor, Tensor]) -> None:
    p, labels = torch.softmax(data[0].double(), dim=1), data[1]
    computed = METRICS[name](p.to("cuda"), labels.to("cuda"))
    assert_same(computed, METRICS[name](p, labels), TOLERANCE)
