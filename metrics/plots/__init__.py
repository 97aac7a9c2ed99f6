"""Figures of utility calibration for a notebook or a paper.

    from metrics.plots import plot_ecdf, plot_utility
    plot_utility(TopK(), {"before": p, "after": q}, labels).savefig("topk.pdf")

They need matplotlib; the rest of the package does not.
"""

from metrics.plots.display import UtilityDisplay
from metrics.plots.ecdf import plot_ecdf
from metrics.plots.utility import plot_utility

__all__ = ["UtilityDisplay", "plot_ecdf", "plot_utility"]
