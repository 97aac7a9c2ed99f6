"""Figures for a notebook or a paper, such as reliability diagrams, with scikit-learn's methods.

    from utility_calibration.metrics.plots import UtilityDisplay
    UtilityDisplay.reliability(labels, p, TopK()).figure_.savefig("topk.pdf")

They need matplotlib; the rest of the package does not.
"""

from .display import UtilityDisplay

__all__ = ["UtilityDisplay"]
