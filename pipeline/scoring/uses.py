"""Which metrics measure a use of a forecast, and what each use is called."""

from utility_calibration.metrics.registry import PURPOSES

SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""
COST = "cost"  # stands for a metric, in the use that is about the cost of decisions
LABELS = {"u_utility": "your utility", "u_losses": "predicted cost", COST: "real cost"}


def is_own(key: str) -> bool:
    """Whether a metric is of a user's own utility."""
    return key.startswith("u_") and (key == "u_utility" or key not in (*PURPOSES, *SHARED))


def is_use(key: str) -> bool:
    """Whether the verdict rests on a metric: it has a use of its own."""
    return key in PURPOSES or is_own(key)


def label_of(key: str) -> str:
    """What a use is called: what people do, or the user's own word."""
    return PURPOSES.get(key) or LABELS.get(key, key.removeprefix("u_"))
