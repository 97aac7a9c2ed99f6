"""Figures of utility calibration for a notebook or a paper, with scikit-learn's methods.

    from metrics/plots/ import UtilityDisplay
    UtilityDisplay.from_predictions(labels, p, utility=TopK()).figure_.savefig("topk.pdf")

They need matplotlib; the rest of the package does not.
"""

from .display import UtilityDisplay

__all__ = ["UtilityDisplay"]
