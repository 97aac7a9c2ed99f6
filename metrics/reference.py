"""The paper's definitions in plain NumPy, float64: one equation after the other, without tricks.

Read it beside the paper (arXiv 2510.25458), whose equations, examples and sections it names. The
tests compare the package with it, which computes the same numbers fast and checks its input.

p = f(X) are probabilities [n, C], y labels [n] from 0 to C - 1, v and u predicted and realized
values [n] of a utility, u⃗ its vectors [n, C], column j for outcome e_j. Ranks begin at 0 here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]
Scheme = Literal["equal_weight", "equal_width"]


# ---- Scores (sec. 4) -----------------------------------------------------------------------------


def accuracy(p: Floats, y: Labels) -> float:
    """Return the share of points whose most probable class, the first on ties, is the label."""
    return float(np.mean(p.argmax(axis=1) == y))


def brier_score(p: Floats, y: Labels) -> float:
    """E ‖f(X) - Y‖² (app. A, proof of Prop. A.1)."""
    return float(np.square(p - np.eye(p.shape[1])[y]).sum(axis=1).mean())


def negative_log_likelihood(p: Floats, y: Labels, floor: float = 1e-12) -> float:
    """E[-log max(f(X)_Y, floor)], in nats."""
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], floor)).mean())


# ---- Binned errors (sec. 2) ----------------------------------------------------------------------


def _bins(confidence: Floats, bins: int, scheme: Scheme) -> Iterable[NDArray[Any]]:
    """Return the points of each bin: by rank of the confidence, or of equal width on [0, 1]."""
    if scheme == "equal_weight":
        order, n = np.argsort(confidence, kind="stable"), len(confidence)
        return [order[k * n // bins : (k + 1) * n // bins] for k in range(bins)]
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return [np.flatnonzero(bin_of == k) for k in range(bins)]


def binned_error(
    confidence: Floats, hit: Floats, bins: int = 15, scheme: Scheme = "equal_weight"
) -> float:
    """`Σ_j |E[(confidence - hit) · 1{confidence in B_j}]|`, which eq. 2.1 and eq. 2.2 contain."""
    error = 0.0
    for members in _bins(confidence, bins, scheme):
        error += abs(np.sum(confidence[members] - hit[members])) / len(hit)
    return float(error)


def binned_top_class_error(
    p: Floats, y: Labels, bins: int = 15, scheme: Scheme = "equal_weight"
) -> float:
    """TCE_bin (eq. 2.1)."""
    return binned_error(p.max(axis=1), 1.0 * (p.argmax(axis=1) == y), bins, scheme)


def binned_class_wise_error(
    p: Floats,
    y: Labels,
    bins: int = 15,
    scheme: Scheme = "equal_weight",
    weights: Literal["uniform", "prior"] = "uniform",
) -> float:
    """CWE_bin (eq. 2.2) with w_c = 1/C, or the share of class c among the labels."""
    classes = p.shape[1]
    errors = [binned_error(p[:, c], 1.0 * (y == c), bins, scheme) for c in range(classes)]
    shares = np.bincount(y, minlength=classes) / len(y)
    return float(np.mean(errors) if weights == "uniform" else shares @ errors)


# ---- Utility calibration of one utility (sec. 3) -------------------------------------------------


def predicted_and_realized(vectors: Floats, p: Floats, y: Labels) -> tuple[Floats, Floats]:
    """v = <f(X), u⃗(X)> (eq. 3.1) and u = u(f(X), Y)."""
    return (p * vectors).sum(axis=1), vectors[np.arange(len(y)), y]


def utility_calibration_by_intervals(v: Floats, u: Floats) -> float:
    """`UC = sup_I |E[(u - v) · 1{v in I}]|` (eq. 3.2) over closed intervals I, one by one.

    Only intervals that end at values of v matter. For tests, as it takes O(distinct values² · n).
    The fast version is in kernels/prefix_range.py.
    """
    ends = itertools.combinations_with_replacement(np.unique(v), 2)
    return max(abs(np.sum((u - v)[(a <= v) & (v <= b)])) for a, b in ends) / len(v)


def running_sum(
    v: Floats, u: Floats, tolerance: float = 0.0, factors: Floats | float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """Return the running sum of u - v in ascending order of v, where an interval may begin or end.

    These places are before the first point and after each group of tied v: neighbours no further
    apart than `tolerance`. The result is the smallest and the largest v of each group [g], and the
    sums, which begin with 0 [g + 1]. `factors` [n] multiply the terms u - v.
    """
    order = np.argsort(v)
    ordered = v[order]
    gap = np.diff(ordered) > tolerance
    sums = np.cumsum((factors * (u - v))[order])
    last = np.append(gap, True)
    return ordered[np.append(True, gap)], ordered[last], np.append(0.0, sums[last])


def utility_calibration(v: Floats, u: Floats, tolerance: float = 0.0) -> float:
    """UC in O(n log n) (Lemma 3.3): a sum over an interval is a difference of two running sums."""
    sums = running_sum(v, u, tolerance)[2]
    return float(sums.max() - sums.min()) / len(v)


def worst_interval(v: Floats, u: Floats, tolerance: float = 0.0) -> tuple[float, float, float, int]:
    """Return the interval I and the sign ξ that attain UC (eq. 3.3): (error, low, high, ξ).

    error = ξ E[(v - u) · 1{v in I}] = E<f(X) - Y, w(f(X))> with the witness w = ξ u⃗ 1{v in I}. I
    lies between the smallest and the largest running sum, in each case the first of equal ones.
    """
    lows, highs, sums = running_sum(v, u, tolerance)
    bottom, top = int(sums.argmin()), int(sums.argmax())
    error = float(sums[top] - sums[bottom]) / len(v)
    if error == 0.0:  # also where the difference is below the smallest number
        return 0.0, float(lows[0]), float(highs[-1]), 0
    first, last = min(bottom, top), max(bottom, top) - 1
    return error, float(lows[first]), float(highs[last]), 1 if bottom > top else -1


def calibration_errors(vectors: Iterable[Floats], p: Floats, y: Labels) -> Floats:
    """UC of each utility given by its vectors; the largest is UC(f, U) (eq. 3.5).

    v is rounded to 2^-40 of the largest payoff's power of two, so that rounding separates no points
    whose v are equal by definition.
    """
    errors = []
    for vector in vectors:
        v, u = predicted_and_realized(vector, p, y)
        cell = np.ldexp(2.0**-40, np.frexp(np.abs(vector).max())[1])
        errors.append(utility_calibration(np.round(v / cell) * cell, u))
    return np.array(errors)


# ---- Classes of utilities, by their vectors u⃗ (sec. 3.3, app. C) ---------------------------------


def class_order(p: Floats) -> NDArray[np.int64]:
    """Return the class at each rank [n, C]: in descending order of p, ties by class index."""
    return np.argsort(-p, axis=1, kind="stable")


def ranks(p: Floats) -> NDArray[np.int64]:
    """rank(p, j) = Σ_i 1{p_j <= p_i} of each class j, ties by class index: [n, C]."""
    return np.argsort(class_order(p), axis=1)


def class_wise(p: Floats, c: int) -> Floats:
    """U_CWE (Example 3.4): u = 1{Y = e_c}, hence v = p_c."""
    return np.tile(np.eye(p.shape[1])[c], (len(p), 1))


def top_k(p: Floats, k: int) -> Floats:
    """U_topK (Example 3.6): u = 1{rank(p, Y) <= K}, hence v is the sum of the K largest.

    U_TCE (Example 3.4) is K = 1: u = Y_*, whether the first of the most probable classes is right.
    """
    return (ranks(p) < k).astype(np.float64)


def linear(p: Floats, payoffs: Floats) -> Floats:
    """U_lin (Example 3.5): u = a_Y, hence v = <p, a>."""
    return np.tile(payoffs, (len(p), 1))


def rank(p: Floats, valuations: Floats) -> Floats:
    """U_rank (Example 3.6): u = θ_rank(p, Y)."""
    return valuations[ranks(p)]


def discounts(exponent: float, classes: int) -> Floats:
    """U_dcg (app. C.3) is U_rank with θ_r = log2(1 + r)^-γ, r = 1 … C."""
    return np.log2(1 + np.arange(1.0, classes + 1)) ** -exponent


def similarity(p: Floats, matrix: Floats) -> Floats:
    """U_w2v (app. C.3): u(p, e_j) = Σ_i p_i S_ij."""
    return p @ matrix


def decision(p: Floats, loss: Floats) -> Floats:
    """U_dec,K (Example 3.7): u = -l(Y, δ(p)), δ(p) = argmin_a E l(Ŷ, a), for a loss l of [C, K]."""
    return -loss[:, (p @ loss).argmin(axis=1)].T


def gain_matrix(p: Floats, gains: Floats) -> Floats:
    """u_R (app. C.2): u(p, e_i) = R_{i, j*(p)}, j*(p) the first class of largest Σ_i p_i R_ij."""
    return gains[:, (p @ gains).argmax(axis=1)].T


# ---- The four classes of the tables and curves, computed without their vectors -------------------


def class_wise_errors(p: Floats, y: Labels) -> Floats:
    """UC of v = p_c, u = 1{y = c} for each class c: [C]."""
    return np.array([utility_calibration(p[:, c], 1.0 * (y == c)) for c in range(p.shape[1])])


def ranked(p: Floats, y: Labels) -> tuple[Floats, Labels]:
    """Return each row in descending order [n, C] and the rank of each label [n].

    This is the map T of Corollary B.10, which turns U_rank into U_lin.
    """
    order = class_order(p)
    return np.take_along_axis(p, order, axis=1), np.argmax(order == y[:, None], axis=1)


def top_k_errors(p: Floats, y: Labels) -> Floats:
    """UC of v = sum of the K largest, u = 1{rank <= K}, for K = 1 … C: [C]."""
    ordered, places = ranked(p, y)
    sums = np.cumsum(ordered, axis=1)
    return np.array(
        [utility_calibration(sums[:, k], 1.0 * (places <= k)) for k in range(p.shape[1])]
    )


def linear_errors(p: Floats, y: Labels, payoffs: Floats) -> Floats:
    """UC of v = <p, a>, u = a_y for each payoff vector a of [M, C]: [M]; U_rank after `ranked`."""
    return np.array([utility_calibration(p @ a, a[y]) for a in payoffs])


# ---- Sampled users (sec. 4); `ecdf` has the distribution of their errors -------------------------


def sample_payoffs(count: int, classes: int, random: np.random.Generator) -> Floats:
    """Uniform on {‖a‖_∞ = 1}: one coordinate is ±1, the others are uniform in [-1, 1]: [M, C]."""
    vectors = random.uniform(-1, 1, size=(count, classes))
    vectors[np.arange(count), random.integers(classes, size=count)] = random.choice([-1, 1], count)
    return vectors


def sample_valuations(count: int, classes: int, random: np.random.Generator) -> Floats:
    """Payoffs in descending order, θ_1 >= … >= θ_C: [M, C]."""
    return -np.sort(-sample_payoffs(count, classes, random), axis=1)


# ---- Scorecard -----------------------------------------------------------------------------------


def scorecard(
    p: Floats, y: Labels, payoffs: Floats, valuations: Floats, exponents: Iterable[float]
) -> dict[str, Any]:
    """Return the paper's metrics by their keys in `METRICS`, and UC of sampled users."""
    ordered, places = ranked(p, y)
    thetas = np.stack([discounts(exponent, p.shape[1]) for exponent in exponents])
    u_cwe, u_topk = class_wise_errors(p, y).max(), top_k_errors(p, y).max()
    return {
        "accuracy": accuracy(p, y),
        "brier": brier_score(p, y),
        "nll": negative_log_likelihood(p, y),
        "cwe_bin": binned_class_wise_error(p, y),
        "tce_bin": binned_top_class_error(p, y),
        "u_cwe": u_cwe,
        "u_topk": u_topk,
        "u_tce": utility_calibration(p.max(axis=1), 1.0 * (p.argmax(axis=1) == y)),
        "u_comb": max(u_cwe, u_topk),
        "u_dcg": linear_errors(ordered, places, thetas).max(),
        "linear": linear_errors(p, y, payoffs),
        "rank": linear_errors(ordered, places, valuations),
    }
