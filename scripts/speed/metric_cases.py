"""Cases about metrics: errors over a class of utilities, binned errors, noise floor, scorecard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import metrics
from metrics import reference
from metrics.certificate import MULTIPLIERS, evidence_of, normal_multipliers
from metrics.forecast import Forecast
from scripts.speed import peers
from scripts.speed.case import OURS, OURS_GPU, PLAIN, Answer, Case, Contender, Target
from scripts.speed.inputs import Arrays, Size

SEED = 0
EXPONENTS = (0.5, 0.75, 1, 1.25, 1.5, 2)
ROUNDING = 1e-9
"""Allowed difference of float64 sums in another order; errors are at most 1."""


class Data(NamedTuple):
    """Inputs of a metric on a device, with what is drawn for it."""

    p: Tensor  # float64 [n, C]
    labels: Tensor
    uniforms: Tensor  # float64 [R, n], for the noise floor
    linear: metrics.Linear | None  # M sampled utilities
    rank: metrics.Rank | None

    @property
    def plain(self) -> tuple[Any, Any]:
        """Probabilities and labels as NumPy arrays."""
        return self.p.numpy(), self.labels.numpy()


def _prepare(inputs: Arrays, device: str) -> Data:
    size = inputs.size
    generator = torch.Generator().manual_seed(SEED)
    return Data(
        torch.from_numpy(inputs.probabilities).to(device),
        torch.from_numpy(inputs.labels).to(device),
        torch.rand((size.draws, size.n), generator=generator, dtype=torch.float64).to(device),
        metrics.Linear.sample(size.utilities, size.classes, SEED) if size.utilities else None,
        metrics.Rank.sample(size.utilities, size.classes, SEED + 1) if size.utilities else None,
    )


MASKS = "plain (masks)"


def _matrix(utilities: Any) -> Any:
    return utilities.matrix.numpy()


def _error(result: Any) -> Answer:
    return {"error": np.asarray(result.cpu() if isinstance(result, Tensor) else result)}


def contender(
    name: str,
    run: Callable[[Data], Any],
    answer: Callable[[Any], Answer] = _error,
    device: Any = "cpu",
) -> Contender:
    """A contender that takes `Data`."""
    return Contender(name, _prepare, run, lambda _, result: answer(result), device=device)


def both(
    plain: Callable[[Data], Any],
    ours: Callable[[Data], Any],
    answer: Callable[[Any], Answer] = _error,
) -> tuple[Contender, ...]:
    """The plain definition, ours, and ours on the GPU."""
    return (
        contender(PLAIN, plain, answer),
        contender(OURS, ours, answer),
        contender(OURS_GPU, ours, answer, device="cuda"),
    )


def linear_curve(size: Size, target: Target | None = None, gpu_target: float | None = None) -> Case:
    """UC of M sampled linear utilities."""
    contenders = both(
        lambda data: reference.linear_errors(*data.plain, _matrix(data.linear)),
        lambda data: data.linear and data.linear.calibration_errors(data.p, data.labels),
    )
    note = "plain: per utility a matrix-vector product, a sort and a running sum"
    return Case(
        "ecdf",
        "eCDF of U_lin",
        size,
        contenders,
        ROUNDING,
        target=target,
        gpu_target=gpu_target,
        note=note,
    )


def rank_curve(size: Size) -> Case:
    """UC of M sampled rank utilities."""
    contenders = both(
        lambda data: reference.rank_errors(*data.plain, _matrix(data.rank)),
        lambda data: data.rank and data.rank.calibration_errors(data.p, data.labels),
    )
    note = "both rank the rows first"
    return Case("ecdf_rank", "eCDF of U_rank", size, contenders, ROUNDING, note=note)


def class_wise(size: Size, target: Target | None = None) -> Case:
    """UC of every class."""
    contenders = both(
        lambda data: reference.class_wise_errors(*data.plain),
        lambda data: metrics.ClassWise().calibration_errors(data.p, data.labels),
    )
    return Case("u_cwe", "U_CWE", size, contenders, ROUNDING, target=target)


def top_k(size: Size) -> Case:
    """UC of every K."""
    contenders = both(
        lambda data: reference.top_k_errors(*data.plain),
        lambda data: metrics.TopK().calibration_errors(data.p, data.labels),
    )
    note = "both rank the rows first"
    return Case("u_topk", "U_topK", size, contenders, ROUNDING, note=note)


def _by_masks(p: Any, labels: Any, bins: int = 15) -> float:
    """CWE_bin by a mask over all points for every class and bin, as one finds it written."""
    n, errors = len(labels), []
    for c in range(p.shape[1]):
        confidence, hit = p[:, c], 1.0 * (labels == c)
        ordered, error = np.sort(confidence), 0.0
        for k in range(bins):
            low, high = ordered[k * n // bins], ordered[(k + 1) * n // bins - 1]
            members = (confidence >= low) & (confidence <= high)
            gap = np.mean(confidence[members]) - np.mean(hit[members])
            error += abs(gap) * np.mean(members)
        errors.append(error)
    return float(np.mean(errors))


def class_wise_binned(size: Size, target: Target | None = None) -> Case:
    """Bins of equal weight."""
    contenders = both(
        lambda data: reference.binned_class_wise_error(*data.plain),
        lambda data: metrics.binned_class_wise_error(data.p, data.labels),
    )
    masks = contender(MASKS, lambda data: _by_masks(*data.plain))
    contenders = (contenders[0], masks, *contenders[1:])
    note = (
        "15 bins of equal weight; plain: a loop over classes and bins of the sorted points; masks: "
        "a mask over all points for every class and bin"
    )
    return Case("cwe_bin", "CWE, binned", size, contenders, ROUNDING, target=target, note=note)


def class_wise_equal_width(size: Size) -> Case:
    """Bins of equal width, which is what torchmetrics has."""
    contenders = both(
        lambda data: reference.binned_class_wise_error(*data.plain, scheme="equal_width"),
        lambda data: metrics.binned_class_wise_error(data.p, data.labels, scheme="equal_width"),
    )
    return Case(
        "cwe_width",
        "CWE, bins of equal width",
        size,
        (*contenders, peers.torchmetrics_class_wise()),
        ROUNDING,
        note="15 bins; torchmetrics: a loop over classes",
    )


def top_class_equal_width(size: Size) -> Case:
    """The usual ECE."""
    contenders = both(
        lambda data: reference.binned_top_class_error(*data.plain, scheme="equal_width"),
        lambda data: metrics.binned_top_class_error(data.p, data.labels, scheme="equal_width"),
    )
    return Case(
        "tce_width",
        "ECE of the top class",
        size,
        (*contenders, peers.torchmetrics_top_class(), peers.netcal_top_class()),
        ROUNDING,
        note="15 bins of equal width; ours checks all probabilities first",
    )


def noise_floor(size: Size) -> Case:
    """U_CWE under R draws of the labels."""

    def ours(data: Data) -> Tensor:
        forecast = Forecast(data.p)
        outcomes = forecast.redraw(data.uniforms)
        return metrics.ClassWise().errors(forecast, outcomes).max(dim=1).values

    contenders = both(
        lambda data: reference.noise_floor(data.p.numpy(), data.uniforms.numpy()), ours
    )
    note = "both draw the labels by inverse CDF; plain sorts anew for every draw"
    return Case("floor", "Noise floor of U_CWE", size, contenders, ROUNDING, note=note)


def certificate(size: Size) -> Case:
    """Bounds on the true U_CWE: of every class its UC and second moment, and 200 multipliers."""

    def plain(data: Data) -> Any:
        p, y = data.plain
        seeded = torch.Generator().manual_seed(SEED)
        normals = torch.randn(MULTIPLIERS, len(p), generator=seeded, dtype=torch.float64).float()
        found = [
            reference.certificate(p[:, c], 1.0 * (y == c), normals.numpy())
            for c in range(p.shape[1])
        ]
        return np.max(found, axis=0)

    def ours(data: Data) -> Any:
        forecast = Forecast(data.p)
        multipliers = normal_multipliers(forecast, SEED)
        given = forecast, forecast.outcomes(data.labels), torch.zeros(0), 0.95, multipliers
        evidence = evidence_of(metrics.ClassWise(), *given)
        return torch.cat([torch.tensor([evidence.upper]), evidence.multiplied.cpu()])

    note = "upper bound and the law behind the lower one; plain: one sort per class, as ours"
    return Case("certificate", "Certificate of U_CWE", size, both(plain, ours), ROUNDING, note=note)


def _numbers(result: Any) -> Answer:
    """The answer of either scorecard: a mapping, or ours with its curves apart."""
    if isinstance(result, dict):
        return {name: np.asarray(value) for name, value in result.items()}
    curves = {name: result.ecdf[name] for name in ("linear", "rank") if name in result.ecdf}
    values = {k: np.asarray(v) for k, v in result.metrics.items() if not metrics.METRICS[k].sampled}
    return {**values, **curves}


def _card(data: Data, floor: int, bootstrap: int = 0) -> Any:
    return metrics.scorecard(
        data.p,
        data.labels,
        utilities=data.linear.matrix.shape[0] if data.linear else 0,
        utility_seed=SEED,
        floor_repetitions=floor,
        bootstrap_repetitions=bootstrap,
        exponents=EXPONENTS,
    )


def scorecard(size: Size, with_plain: bool = True) -> Case:
    """Every number of the paper about one forecast."""

    def plain(data: Data) -> Any:
        matrices = _matrix(data.linear), _matrix(data.rank)
        return reference.scorecard(*data.plain, *matrices, EXPONENTS)

    plain_and_ours = both(plain, lambda data: _card(data, 0), _numbers)
    floor = contender("ours + floor", lambda data: _card(data, 100), _numbers)
    floor_gpu = contender("ours + floor (GPU)", floor.run, _numbers, device="cuda")
    whole = contender("ours, whole evaluation", lambda data: _card(data, 400, 200), _numbers)
    contenders = (*plain_and_ours, floor, whole, floor_gpu)
    note = (
        "all metrics, certificates and both eCDFs; + floor: 100 draws of the labels; whole "
        "evaluation: as the stage does it, 400 draws and 200 resamplings of the points; plain: the "
        "metrics and eCDFs alone"
    )
    return Case(
        "scorecard",
        "Scorecard",
        size,
        contenders if with_plain else contenders[1:],
        ROUNDING,
        reference=PLAIN if with_plain else OURS,
        note=note,
    )


def metric_cases(quick: bool) -> list[Case]:
    """All cases of this file; `quick`: small sizes, seconds in all, no targets."""
    if quick:
        n, classes = 1500, 40
        curve, plain = Size(n, classes, utilities=60), Size(n, classes)
        small = [curve_case(curve) for curve_case in (linear_curve, rank_curve, scorecard)]
        widths = [class_wise_equal_width(plain), top_class_equal_width(plain)]
        parts = [class_wise(plain), top_k(plain), class_wise_binned(plain)]
        return [*small, *parts, *widths, noise_floor(Size(n, classes, draws=5)), certificate(plain)]
    cifar10, cifar100, imagenet = (3000, 10), (3000, 100), (15_000, 1000)
    return [
        linear_curve(Size(*cifar10, utilities=1500)),
        class_wise(Size(*cifar10)),
        top_k(Size(*cifar10)),
        class_wise_binned(Size(*cifar10)),
        scorecard(Size(*cifar10, utilities=1500)),
        linear_curve(Size(*cifar100, utilities=1500)),
        rank_curve(Size(*cifar100, utilities=1500)),
        class_wise(Size(*cifar100)),
        top_k(Size(*cifar100)),
        class_wise_binned(Size(*cifar100)),
        class_wise_equal_width(Size(*cifar100)),
        top_class_equal_width(Size(*cifar100)),
        noise_floor(Size(*cifar100, draws=20)),
        certificate(Size(*cifar100)),
        scorecard(Size(*cifar100, utilities=1500)),
        linear_curve(Size(*imagenet, utilities=1500), Target(1 / 10, PLAIN), gpu_target=0.060),
        class_wise(Size(*imagenet), Target(1 / 4, PLAIN)),
        top_k(Size(*imagenet)),
        class_wise_binned(Size(*imagenet), Target(1 / 15, MASKS)),
        noise_floor(Size(*imagenet, draws=5)),
        certificate(Size(*imagenet)),
        scorecard(Size(*imagenet, utilities=1500), with_plain=False),
    ]
