"""The definitions, written as one would write them down: NumPy, a loop, no trick.

They are what our answers are checked against, and the plain side of every ratio. Definitions: UC of
one utility is the range of the running sum of residuals in the order of the predicted utility, read
where groups of ties end (Lemma 3.3 of the paper).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]
LIKELIHOOD_FLOOR = 1e-12


def calibration_error(predicted: Floats, realized: Floats) -> float:
    """UC of one utility: sort, cumulate, keep the ends of groups of ties, range."""
    order = np.argsort(predicted)
    ordered = predicted[order]
    sums = np.cumsum(realized[order] - ordered)
    last_of_group = np.append(ordered[1:] != ordered[:-1], True)
    allowed = np.append(0.0, sums[last_of_group])
    return float(np.ptp(allowed)) / len(predicted)


def linear_errors(p: Floats, labels: Labels, payoffs: Floats) -> Floats:
    """UC of the utilities u(p, e_j) = a_j, one payoff vector after the other: [M]."""
    return np.array([calibration_error(p @ a, a[labels]) for a in payoffs])


def ranking(p: Floats, labels: Labels) -> tuple[Floats, Labels]:
    """Return the rows sorted downwards [n, C] and the rank of each label [n], ties by class."""
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    return ranked, np.argmax(order == labels[:, None], axis=1)


def rank_errors(p: Floats, labels: Labels, valuations: Floats) -> Floats:
    """UC of the utilities u(p, e_j) = θ_rank(p, j): [M]."""
    ranked, ranks = ranking(p, labels)
    return linear_errors(ranked, ranks, valuations)


def class_wise_errors(p: Floats, labels: Labels) -> Floats:
    """UC of v = p_c, u = 1{y = c}, class after class: [C]."""
    return np.array([calibration_error(p[:, c], 1.0 * (labels == c)) for c in range(p.shape[1])])


def top_k_errors(p: Floats, labels: Labels) -> Floats:
    """UC of v = sum of the K largest, u = 1{rank <= K}, for K = 1 … C: [C]."""
    ranked, ranks = ranking(p, labels)
    sums = np.cumsum(ranked, axis=1)
    return np.array([calibration_error(sums[:, k], 1.0 * (ranks <= k)) for k in range(p.shape[1])])


def _equal_weight_error(confidence: Floats, hit: Floats, bins: int) -> float:
    order = np.argsort(confidence, kind="stable")
    n, error = len(order), 0.0
    for k in range(bins):
        members = order[k * n // bins : (k + 1) * n // bins]
        error += abs(np.sum(confidence[members] - hit[members])) / n
    return error


def _equal_width_error(confidence: Floats, hit: Floats, bins: int) -> float:
    error = 0.0
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    for k in range(bins):
        members = bin_of == k
        error += abs(np.sum(confidence[members] - hit[members])) / len(hit)
    return error


def class_wise_binned_error(p: Floats, labels: Labels, bins: int = 15) -> float:
    """CWE_bin: mean over classes of the error over equal-weight bins, by two loops."""
    errors = [_equal_weight_error(p[:, c], 1.0 * (labels == c), bins) for c in range(p.shape[1])]
    return float(np.mean(errors))


def class_wise_binned_error_by_masks(p: Floats, labels: Labels, bins: int = 15) -> float:
    """The same by a mask over all points for every class and bin."""
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


def class_wise_equal_width_error(p: Floats, labels: Labels, bins: int = 15) -> float:
    """The same with bins of equal width, which is what other packages offer."""
    errors = [_equal_width_error(p[:, c], 1.0 * (labels == c), bins) for c in range(p.shape[1])]
    return float(np.mean(errors))


def _top_class(p: Floats, labels: Labels) -> tuple[Floats, Floats]:
    return p.max(axis=1), 1.0 * (p.argmax(axis=1) == labels)


def top_class_equal_width_error(p: Floats, labels: Labels, bins: int = 15) -> float:
    """The ECE of the literature: confidence of the top class, bins of equal width."""
    return _equal_width_error(*_top_class(p, labels), bins)


def noise_floor(p: Floats, uniforms: Floats) -> Floats:
    """U_CWE for labels drawn from p by inverse CDF over the classes in descending order: [R]."""
    order = np.argsort(-p, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    worst = []
    for draw in uniforms:
        place = (sums <= (draw * sums[:, -1])[:, None]).sum(axis=1)
        labels = order[np.arange(len(p)), np.minimum(place, p.shape[1] - 1)]
        worst.append(class_wise_errors(p, labels).max())
    return np.array(worst)


def scorecard(
    p: Floats, labels: Labels, payoffs: Floats, valuations: Floats, exponents: tuple[float, ...]
) -> dict[str, Any]:
    """Every metric of `metrics.scorecard` without noise floor, keys alike; "linear", "rank": UC."""
    classes = p.shape[1]
    ranked, ranks = ranking(p, labels)
    one_hot = np.eye(classes)[labels]
    discounts = np.array([np.log2(1 + np.arange(1, classes + 1)) ** -g for g in exponents])
    of_label = p[np.arange(len(p)), labels]
    confidence, hit = _top_class(p, labels)
    class_wise, top_k = class_wise_errors(p, labels).max(), top_k_errors(p, labels).max()
    return {
        "accuracy": hit.mean(),
        "brier": np.square(p - one_hot).sum(axis=1).mean(),
        "nll": -np.log(np.maximum(of_label, LIKELIHOOD_FLOOR)).mean(),
        "cwe_bin": class_wise_binned_error(p, labels),
        "tce_bin": _equal_weight_error(confidence, hit, 15),
        "u_cwe": class_wise,
        "u_topk": top_k,
        "u_tce": calibration_error(confidence, hit),
        "u_comb": max(class_wise, top_k),
        "u_dcg": linear_errors(ranked, ranks, discounts).max(),
        "linear": linear_errors(p, labels, payoffs),
        "rank": linear_errors(ranked, ranks, valuations),
    }


def full_audit(
    p: Floats, top_sums: Floats, labels: Labels, ranks: Labels, linear: Floats, rank: Floats
) -> float:
    """The largest UC over all classes, all K and the sampled utilities, each one sorted.

    Takes what a step keeps anyway: the ranking, as sums of the K largest [n, C] and ranks [n]. The
    sampled utilities' predictions are one matrix product per family.
    """
    classes = range(p.shape[1])
    drops = rank - np.pad(rank[:, 1:], ((0, 0), (0, 1)))  # sum_k θ_k p_(k), summed by parts
    errors = [calibration_error(p[:, c], 1.0 * (labels == c)) for c in classes]
    errors += [calibration_error(top_sums[:, k], 1.0 * (ranks <= k)) for k in classes]
    for predicted, payoffs, codes in (
        (linear @ p.T, linear, labels),
        (drops @ top_sums.T, rank, ranks),
    ):
        errors += [calibration_error(v, a[codes]) for v, a in zip(predicted, payoffs)]
    return max(errors)


def log_loss(logits: NDArray[Any], labels: Labels) -> float:
    """Mean of -log softmax(z)_y in float64, nats."""
    total = 0.0
    for start in range(0, len(labels), 4096):
        part = slice(start, start + 4096)
        log_p = log_softmax(logits[part].astype(np.float64), axis=1)
        total -= log_p[np.arange(len(log_p)), labels[part]].sum()
    return total / len(labels)


def temperature(logits: NDArray[np.float32], labels: Labels) -> float:
    """The inverse temperature that minimises the NLL, by Brent's method on its logarithm."""
    z = logits.astype(np.float64)
    found = minimize_scalar(
        lambda t: log_loss(np.exp(t) * z, labels), bounds=(-5, 5), options={"xatol": 1e-8}
    )
    return float(np.exp(found.x))


def _fitted(
    x: Floats, labels: Labels, start: Floats, mapped: Any, slopes: Any, weights: Any = 0.0
) -> Floats:
    """Minimise NLL of softmax(mapped(point)) + sum of weights * point² by SciPy's L-BFGS-B."""
    one_hot = np.eye(x.shape[1])[labels]

    def objective(parameters: Floats) -> tuple[float, Floats]:
        point = parameters.reshape(start.shape)
        log_p = log_softmax(mapped(point), axis=1)
        loss = -float((log_p * one_hot).sum()) / len(labels) + float((weights * point**2).sum())
        residual = (np.exp(log_p) - one_hot) / len(labels)
        return loss, (slopes(residual) + 2 * weights * point).ravel()

    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-12, "gtol": 1e-7}
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x).reshape(start.shape)


def vector_scaling(logits: NDArray[np.float32], labels: Labels) -> Floats:
    """w and b of softmax(w z + b) by L-BFGS-B from w = 1, b = 0: [2, C]."""
    z = logits.astype(np.float64)
    return _fitted(
        z,
        labels,
        start=np.stack([np.ones(z.shape[1]), np.zeros(z.shape[1])]),
        mapped=lambda point: z * point[0] + point[1],
        slopes=lambda residual: np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)]),
    )


def dirichlet(logits: NDArray[np.float32], labels: Labels, odir: float, l2: float) -> Floats:
    """W and b of softmax(W x + b), x the centred log-probabilities, with the ODIR penalty.

    L-BFGS-B from W = I: [C, C + 1], b last.
    """
    x = logits.astype(np.float64)
    x -= x.mean(axis=1, keepdims=True)
    classes = x.shape[1]
    weights = np.full((classes, classes + 1), odir / (classes * (classes - 1)))
    np.fill_diagonal(weights, 0.0)
    weights[:, classes] = l2 / classes
    return _fitted(
        x,
        labels,
        start=np.eye(classes, classes + 1),
        mapped=lambda point: x @ point[:, :classes].T + point[:, classes],
        slopes=lambda residual: np.column_stack([residual.T @ x, residual.sum(axis=0)]),
        weights=weights,
    )
