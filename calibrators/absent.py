"""Classes without a calibration point: how much of their probability is left.

Temperature scaling expects μ_c points of class c, and n_c are there. A class without a point may be
one that was merely missed, or one that never occurs. All classes together tell how often which is
the case. The ratio of what occurs to what is expected, r_c, has a prior that is learned from them
(empirical Bayes):

    r_c = 0 with probability π, otherwise r_c ~ Gamma(a, a), with mean 1 and variance 1/a,
    n_c ~ Poisson(r_c μ_c).

So n_c is 0, or negative binomial. The likelihood of all counts chooses (π, a), and the probability
of a class without a point is multiplied by the posterior mean of its r_c.
"""

import numpy as np

from utility_calibration.metrics.arrays import Array

SPIKES = np.array([0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5])
"""Values of π that are tried."""
SHAPES = np.geomspace(0.5, 1e4, 25)
"""Values of a that are tried; with the last one r_c is 1 within a hundredth."""


def absent_factors(observed: Array, expected: Array) -> Array:
    """Return E[r_c | n_c = 0], float64 [C], for n_c = `observed` and μ_c = `expected`, [C] each.

    The factors lie in [0, 1], and are the smaller the more points were expected. Those of classes
    with points mean nothing. Counts may be weighted, if their sums are numbers of points.
    """
    from scipy.special import gammaln, xlog1py, xlogy  # it takes long to import

    expected = expected.clip(min=np.finfo(np.float64).tiny)
    shapes = SHAPES[:, None]
    # Logarithms, [A, C], of the probabilities of n_c where r_c ~ Gamma(a, a).
    log_none = -xlog1py(shapes, expected / shapes)  # of no point
    log_count = (
        log_none
        + gammaln(observed + shapes)
        - gammaln(shapes)
        - gammaln(observed + 1)
        + xlogy(observed, expected / (shapes + expected))
    )
    with np.errstate(divide="ignore"):
        log_spikes, log_others = np.log(SPIKES), np.log1p(-SPIKES)
        log_empty = np.where(observed == 0, 0.0, -np.inf)
    totals = np.stack(
        [
            np.logaddexp(log_other + log_count, log_spike + log_empty).sum(axis=1)
            for log_spike, log_other in zip(log_spikes, log_others)
        ]
    )
    best_spike, best_shape = np.unravel_index(totals.argmax(), totals.shape)
    spike, shape = SPIKES[best_spike], SHAPES[best_shape]
    alive = (1 - spike) * np.exp(log_none[best_shape])  # and no point all the same
    is_alive = np.divide(alive, alive + spike, out=np.ones_like(alive), where=alive + spike > 0)
    factors: Array = is_alive * shape / (shape + expected)
    return factors
