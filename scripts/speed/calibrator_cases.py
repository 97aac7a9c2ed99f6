"""Cases about calibrators: fitting on the calibration part, and patching step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import calibrators
from calibrators import reference
from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.audit import StandardFamilies, find_worst
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent
from metrics.reference import negative_log_likelihood
from scripts.speed import peers
from scripts.speed.case import OURS, OURS_GPU, PLAIN, Answer, Case, Contender, Target
from scripts.speed.inputs import Arrays, Size

LIKELIHOOD = 1e-7
"""How much worse than the reference's a mean NLL may be: what float32 logits can resolve."""
ROUNDING = 1e-9
ODIR, L2 = 10.0, 1.0
"""Penalties of the Dirichlet cases per entry: of the size that tuning finds, the same for all C."""
TUNING_LOSS, LUCK = 1e-4, 1e-2
"""How much worse than with plain tuning the hold-out NLL may be; and where runs are few and two
searches differ by luck."""
STEP_SIZE = 1.0
AUDIT_SEED = 0

Logits = tuple[Tensor, Tensor, Arrays]


def _logits(inputs: Arrays, device: str) -> Logits:
    logits, labels = torch.from_numpy(inputs.logits), torch.from_numpy(inputs.labels)
    return logits.to(device), labels.to(device), inputs


def _fits(
    make: Callable[[], calibrators.TemperatureScaling | Any],
    answer: Callable[[Any, Arrays], Answer],
) -> tuple[Contender, ...]:
    """Ours on both devices: `make()` fitted to the logits."""

    def run(data: Logits) -> Any:
        return make().fit(data[0], data[1])

    def answer_of(data: Logits, fitted: Any) -> Answer:
        return answer(fitted, data[2])

    return (
        Contender(OURS, _logits, run, answer_of),
        Contender(OURS_GPU, _logits, run, answer_of, device="cuda"),
    )


def _plain(
    run: Callable[[Arrays], Any], logits: Callable[[Arrays, Any], Any], name: str = PLAIN
) -> Contender:
    """A reference fit; its answer is the NLL of the calibrated `logits`."""

    def answer(data: Arrays, fitted: Any) -> Answer:
        return _nll(data, logits(data, fitted))

    return Contender(name, lambda inputs, device: inputs, run, answer)


def _nll(data: Arrays, logits: Any) -> Answer:
    return {"nll": np.array(reference.log_loss(logits, data.labels))}


def temperature(size: Size, target: Target | None = None, netcal: bool = False) -> Case:
    """One parameter."""
    ours = _fits(
        calibrators.TemperatureScaling,
        lambda fitted, data: _nll(data, data.logits.astype(float) / fitted.temperature_),
    )
    plain = _plain(
        lambda data: reference.temperature(data.logits, data.labels),
        lambda data, beta: data.logits * beta,
    )
    others = [peers.probmetrics_temperature(), peers.sklearn_temperature()]
    if netcal:
        others.append(peers.netcal_temperature())
    return Case(
        "temperature",
        "Temperature scaling, fit",
        size,
        (plain, *ours, *others),
        LIKELIHOOD,
        compare="no_worse",
        target=target,
        note="float32 logits; the answer is the NLL; plain: SciPy's Brent",
        warm_up=Size(600, 5),
    )


def vector(size: Size, target: Target | None = None) -> Case:
    """2 C parameters."""
    ours = _fits(
        calibrators.VectorScaling,
        lambda fitted, data: _nll(data, data.logits * fitted.scale_ + fitted.shift_),
    )
    plain = _plain(
        lambda data: reference.vector_scaling(data.logits, data.labels),
        lambda data, found: data.logits * found[0] + found[1],
    )
    return Case(
        "vector",
        "Vector scaling, fit",
        size,
        (plain, *ours, peers.probmetrics_vector()),
        LIKELIHOOD,
        compare="no_worse",
        target=target,
        note="float32 logits; the answer is the NLL; plain: SciPy's L-BFGS-B",
        warm_up=Size(600, 5),
    )


def isotonic(size: Size, target: Target | None = None, netcal: bool = False) -> Case:
    """A monotone map per class."""

    def mapped(fitted: Any, data: Arrays) -> Answer:
        points = data.logits[: peers.ISOTONIC_POINTS]
        normalized = fitted.predict_proba(points)
        raw = fitted.set_params(normalize=False).predict_proba(points)
        return {"mapped": raw, "normalized": normalized}

    ours = _fits(calibrators.IsotonicCalibration, mapped)
    sklearn = peers.sklearn_isotonic()
    others = [peers.netcal_isotonic()] if netcal else []
    return Case(
        "isotonic",
        "Isotonic one-vs-all, fit",
        size,
        (sklearn, *ours, *others),
        ROUNDING,
        reference=sklearn.name,
        target=target,
        note="from logits, softmax included; netcal: from probabilities",
    )


def dirichlet(
    size: Size,
    target: Target | None = None,
    gpu_target: float | None = None,
    with_plain: bool = True,
) -> Case:
    """C² + C parameters, one fit at given penalties."""
    odir, l2 = ODIR * size.classes * (size.classes - 1) / 1000, L2 * size.classes / 1000

    def objective(point: Any, data: Arrays) -> Answer:
        loss = reference.penalised_loss(data.logits, data.labels, point, odir, l2)
        return {"objective": np.array(loss)}

    ours = _fits(
        lambda: calibrators.DirichletCalibration(odir=odir, l2=l2),
        lambda fitted, data: objective(np.column_stack([fitted.matrix_, fitted.intercept_]), data),
    )
    plain = Contender(
        PLAIN,
        lambda inputs, device: inputs,
        lambda data: reference.dirichlet(data.logits, data.labels, odir, l2),
        lambda data, point: objective(point, data),
    )
    return Case(
        "dirichlet",
        "Dirichlet calibration, one fit",
        size,
        (plain, *ours) if with_plain else ours,
        LIKELIHOOD,
        compare="no_worse",
        reference=PLAIN if with_plain else OURS,
        target=target,
        gpu_target=gpu_target,
        note="the answer is the penalised NLL; plain: SciPy's L-BFGS-B",
        warm_up=Size(600, 5),
    )


def dirichlet_tuning(size: Size, runs: int, tolerance: float) -> Case:
    """The search for λ and μ, and the fit with the best."""

    def answer(fitted: Any, data: Arrays) -> Answer:
        return {"holdout_nll": np.array(min(run["score"] for run in fitted.tuning_log_[runs:]))}

    plain = Contender(
        PLAIN,
        lambda inputs, device: inputs,
        lambda data: reference.tuned_dirichlet(data.logits, data.labels, runs),
        lambda data, found: {"holdout_nll": np.array(found[1])},
    )
    return Case(
        "dirichlet_tuning",
        f"Dirichlet calibration, {runs} tuning runs",
        size,
        (plain, *_fits(lambda: calibrators.DirichletCalibration(tuning_runs=runs), answer)),
        tolerance,
        compare="no_worse",
        note="the answer is the hold-out NLL of the chosen λ, μ; plain: scikit-optimize's "
        "gp_minimize, every run fitted by SciPy's L-BFGS-B",
        warm_up=Size(200, 3),
    )


class Patching:
    """A trajectory of patching that can be continued, and audits of where it stands."""

    def __init__(self, inputs: Arrays, device: str) -> None:
        size = inputs.size
        p = torch.from_numpy(inputs.probabilities).to(device)
        labels = torch.from_numpy(inputs.labels).to(device)
        self.state = PatchedForecast(p, labels)
        there = torch.device(device)
        self.auditor = StandardFamilies(size.classes, size.utilities, AUDIT_SEED, there)
        update = ProjectedDescent(STEP_SIZE)
        self.algorithm = Algorithm1(self.state, self.auditor, update, tolerance=0.0)
        self.errors: list[float] = []

    def step(self) -> None:
        """Audit, search the step, move the points."""
        patch = self.algorithm.round()
        if patch is None:
            raise RuntimeError("no patch was found")
        self.errors.append(patch.error)

    def audit(self, number: int) -> float:
        """The largest UC at audit `number`, by bounds."""
        return find_worst(self.auditor(self.state, number))[2]

    def sorted_audit(self, number: int) -> float:
        """The same by sorting every utility."""
        state = self.state
        payoffs = self.auditor.draw(number)  # linear, rank
        tensors = [state.probabilities, state.top_sums, state.labels, state.ranks, *payoffs]
        arrays = [np.ascontiguousarray(tensor.cpu().numpy()) for tensor in tensors]
        return reference.full_audit(*arrays)


def _enough_classes(size: Size) -> Size:
    """A small size with the same kernels: they must be compiled before the clock starts."""
    return Size(600, min(size.classes, 256), size.utilities)


def _first_audit(patching: Patching, error: float) -> Answer:
    return {"first": np.array(error)}


def audit(size: Size, gpu_target: float | None = None) -> Case:
    """One audit of C + C + 2 M utilities."""

    def ours(patching: Patching) -> float:
        return patching.audit(0)

    contenders = (
        Contender(PLAIN, Patching, lambda patching: patching.sorted_audit(0), _first_audit),
        Contender(OURS, Patching, ours, _first_audit),
        Contender(OURS_GPU, Patching, ours, _first_audit, device="cuda"),
    )
    note = (
        "C class-wise, C top-K, M linear, M rank utilities; plain: a matrix product per sampled "
        "family, then all sorted one by one; the ranking of the rows is given on both sides"
    )
    return Case(
        "audit",
        "Patching, one audit",
        size,
        contenders,
        ROUNDING,
        gpu_target=gpu_target,
        note=note,
        warm_up=_enough_classes(size),
    )


def patching_steps(
    size: Size, steps: int, target: Target | None = None, gpu_target: float | None = None
) -> Case:
    """Whole steps of a trajectory; the plain side does the audit alone."""

    def ours(patching: Patching) -> None:
        for _ in range(steps):
            patching.step()

    def answer(patching: Patching, _: None) -> Answer:
        number = len(patching.errors)
        gap = patching.audit(number) - patching.sorted_audit(number)
        return {"first": np.array(patching.errors[0]), "gap": np.array(gap)}

    def plain_answer(patching: Patching, error: float) -> Answer:
        return {"first": np.array(error), "gap": np.array(0.0)}

    contenders = (
        Contender(PLAIN, Patching, lambda patching: patching.sorted_audit(0), plain_answer),
        Contender(OURS, Patching, ours, answer, steps=steps),
        Contender(OURS_GPU, Patching, ours, answer, device="cuda", steps=steps),
    )
    note = (
        f"plain: the audit alone, {2 * size.classes + 2 * size.utilities} sorts and two products; "
        "ours: the whole step, that is drawing the sampled utilities, audit, line search and "
        f"projection, mean over {steps} steps, each run goes on from the last; the first ranking "
        "of the rows is on neither side; answers: UC of the first audit, and of one after all steps"
    )
    return Case(
        "patching",
        "Patching, one step",
        size,
        contenders,
        ROUNDING,
        target=target,
        gpu_target=gpu_target,
        note=note,
        warm_up=_enough_classes(size),
    )


def logit_shift(size: Size) -> Case:
    """Our calibrator of many utilities against what a user would pick instead of it."""

    def answer(data: Logits, fitted: Any) -> Answer:
        return {"nll": np.array(fitted.losses_[-1])}

    def run(data: Logits) -> Any:
        return calibrators.LogitShiftPatching().fit(data[0], data[1])

    def run_paper(data: Logits) -> Any:
        return calibrators.UtilityPatching().fit(data[0], data[1])

    def paper_answer(data: Logits, fitted: Any) -> Answer:
        p = fitted.predict_proba(data[0]).cpu().numpy()
        return {"nll": np.array(negative_log_likelihood(p, data[2].labels))}

    contenders = (
        Contender(OURS, _logits, run, answer),
        Contender(OURS_GPU, _logits, run, answer, device="cuda"),
    )
    others = (
        Contender("ours, the paper's patching", _logits, run_paper, paper_answer, tolerance=np.inf),
        peers.structured("SVSCalibrator"),
        peers.structured("SMSCalibrator"),
    )
    return Case(
        "logit_shift",
        "Logit-shift patching, fit",
        size,
        contenders + (others if size.classes <= 100 else ()),
        LIKELIHOOD,
        compare="no_worse",
        reference=OURS,
        note="tuning included; SVS and SMS: structured vector and matrix scaling. All are methods "
        "of their own: the difference, of the NLL on the points of the fit, is no error",
        warm_up=Size(600, 5),
    )


def calibrator_cases(quick: bool) -> list[Case]:
    """All cases of this file; `quick`: small sizes, seconds in all, no targets."""
    if quick:
        small, sampled = Size(1500, 20), Size(1500, 20, utilities=10)
        fits = [temperature(small, netcal=True), vector(small), isotonic(small, netcal=True)]
        fits += [dirichlet(Size(1500, 5)), dirichlet_tuning(Size(300, 3), 12, LUCK)]
        return [*fits, audit(sampled), patching_steps(sampled, 3), logit_shift(small)]
    cifar10, cifar100, imagenet = (7000, 10), (7000, 100), (35_000, 1000)
    return [
        dirichlet(Size(*cifar10)),
        dirichlet_tuning(Size(2000, 10), 80, TUNING_LOSS),
        patching_steps(Size(*cifar10, utilities=264), 10),
        temperature(Size(*cifar100), netcal=True),
        vector(Size(*cifar100), Target(1, "probmetrics")),
        isotonic(Size(*cifar100), netcal=True),
        patching_steps(Size(*cifar100, utilities=264), 10),
        logit_shift(Size(*cifar100)),
        temperature(Size(*imagenet), Target(0.35, "probmetrics")),
        isotonic(Size(*imagenet), Target(1 / 3, "scikit-learn")),
        audit(Size(*imagenet, utilities=264), gpu_target=0.100),
        patching_steps(Size(*imagenet, utilities=264), 5, Target(1 / 6, PLAIN), gpu_target=0.025),
        dirichlet(Size(*imagenet), Target(60, None), gpu_target=3, with_plain=False),
        logit_shift(Size(*imagenet)),
    ]
