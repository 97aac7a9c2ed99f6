"""Rows of made-up scores, and the verdict on them."""

from tests.pipeline.reporting.conftest import decided
from utility_calibration.pipeline.reporting.verdict import verdict_of

TEMP, VEC, ISO, DIR = "temperature", "vector", "isotonic", "dirichlet"
BEYOND = {"beyond_floor": True}
PLACE = {
    "utility": 0, "error": 0.05, "is_beyond": True, "low": 0.44, "high": 0.87, "share": 0.34,
    "gap": 0.06, "gain": 0.02, "threshold": 0.4, "act_from": 0.47, "diagram": {},
    "fresh_gain": 0.001, "fresh_half_width": 0.004,
}  # fmt: skip
"""A worst place without its name."""


def cell(mean, best=False, **more):
    return {"mean": mean, "floor_q95": 0.005, "not_worse": best, "beyond_floor": False} | more


def column_of(*methods, best=(), **rest):
    return {m: cell(0.01 * (k + 1), m in best, **rest) for k, m in enumerate(methods)}


def verdict(columns, points=3000, costs=None, **more):
    """The verdict on rows by metric and method."""
    return verdict_of(decided(columns, test_points=points, **more), costs)


def costs_of(half, **means):
    """The record of decisions with these costs by method."""
    always = {"always wait": {"difference": -1.0, "difference_half_width": half}}
    methods = {
        name: {"cost": mean, "against": always | {
            other: {"difference": mean - means[other], "difference_half_width": half}
            for other in means if other != name
        }}
        for name, mean in means.items()
    }  # fmt: skip
    return {"methods": methods, "best_constant": "wait", "constant": {"wait": 1.2}}
