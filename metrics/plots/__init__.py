"""Figures for a notebook or a paper, such as reliability diagrams, with scikit-learn's methods.

    from utility_calibration.metrics.plots import UtilityDisplay
    UtilityDisplay.reliability(p, labels, TopK()).figure_.savefig("topk.pdf")

They need matplotlib; the rest of the package does not.
"""

from utility_calibration.imports import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__, __file__)
