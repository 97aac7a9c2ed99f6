"""What this package adds to the paper, in plain NumPy: noise floors, gains, a truthful error.

The tests compare the package with it, as with `metrics/reference.py`, whose names it shares.
"""

from __future__ import annotations

import itertools

import numpy as np

from .reference import Floats, Labels, class_order, running_sum


def redraw(p: Floats, uniforms: Floats) -> Labels:
    """Return a label per point, drawn from p by inverse CDF over classes in descending order."""
    order = class_order(p)
    sums = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    place = (sums <= (uniforms * sums[:, -1])[:, None]).sum(axis=1)
    return order[np.arange(len(p)), np.minimum(place, p.shape[1] - 1)]


def largest_sum(p: Floats, y: Labels, factors: Floats) -> float:
    """Return the largest `|Σ factor (u - v) 1{v in I}|` over U_CWE and all intervals I."""
    pairs = [(p[:, c], 1.0 * (y == c)) for c in range(p.shape[1])]
    return max(float(np.ptp(running_sum(v, u, factors=factors)[2])) for v, u in pairs)


def noise_floor(p: Floats, uniforms: Floats, weights: Floats | float = 1.0) -> Floats:
    """UC(f, U_CWE) under R draws of labels from p, for which p is perfectly calibrated: [R].

    Where a point of class c has the weight w_c, `weights` [C], labels are drawn from p_c / w_c.
    """
    of_class = np.broadcast_to(weights, p.shape[1])
    drawn = [redraw(p / of_class, draw) for draw in uniforms]
    return np.array([largest_sum(p, y, of_class[y]) / of_class[y].sum() for y in drawn])


def cluster_floor(p: Floats, y: Labels, clusters: Labels, normals: Floats) -> Floats:
    """The same for dependent points: u - v times the normal number of its cluster, [R, G]."""
    return np.array([largest_sum(p, y, draw[clusters]) / len(y) for draw in normals])


def acting_gain(v: Floats, u: Floats) -> float:
    """sup over t, s of `|Σ (u - t)| / n` over the points between s and t (arXiv 2511.13699).

    A user with the threshold t should act from s on. In terms of points: those from some v up to t
    are left out by mistake, or those from t up to some v are acted on by mistake.
    """
    sums = [
        sign * np.sum((u - t)[(sign * s <= sign * v) & (sign * v <= sign * t)])
        for sign in (1, -1)
        for t in np.unique(v)
        for s in np.unique(v)
    ]
    return max(0.0, *sums) / len(v)


def two_bin_error(p: Floats, y: Labels) -> float:
    """Σ_c of the mean over t in [0, 1] of the squared sums of 1{y = c} - p_c over two bins, / n².

    The bins are p_c <= t and p_c > t (arXiv 2508.13100); t changes them only at values of p_c.
    """
    total = 0.0
    for c in range(p.shape[1]):
        away, cuts = 1.0 * (y == c) - p[:, c], np.unique(np.append(p[:, c], [0.0, 1.0]))
        for low, high in itertools.pairwise(cuts):
            is_low = p[:, c] <= low
            total += (high - low) * (away[is_low].sum() ** 2 + away[~is_low].sum() ** 2)
    return float(total) / len(y) ** 2
