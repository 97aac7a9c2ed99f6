"""`prefix_range` in plain NumPy, one draw after the other."""

import numpy as np


def plain_prefix_range(predicted, payoffs, codes, edges, weights=None, tolerance=0.0):
    order = np.argsort(predicted, axis=1, kind="stable")
    ordered = np.take_along_axis(predicted, order, axis=1)
    ends = np.pad(np.diff(ordered, axis=1) > tolerance, ((0, 0), (0, 1)), constant_values=True)
    weights = np.ones((1, predicted.shape[1])) if weights is None else weights.astype(float)
    draws, ranges, at_edges = max(len(codes), len(weights)), [], []
    for k in range(draws):
        draw, weight = codes[k % len(codes)], weights[k % len(weights)][order]
        residuals = np.take_along_axis(payoffs, draw[order].astype(int), axis=1) - ordered
        sums, passed = (weight * residuals).cumsum(axis=1), weight.cumsum(axis=1)
        wanted = edges[k % len(edges)]
        place = np.stack([np.searchsorted(p, wanted) for p in passed]).clip(max=passed.shape[1] - 1)
        beyond = (np.take_along_axis(passed, place, axis=1) - wanted).clip(min=0)
        at = np.take_along_axis(sums, place, axis=1)
        at_edges.append(at - beyond * np.take_along_axis(residuals, place, axis=1))
        at_ends = np.where(ends, sums, 0.0)
        ranges.append(at_ends.max(axis=1).clip(min=0) - at_ends.min(axis=1).clip(max=0))
    return np.stack(ranges), np.stack(at_edges)
