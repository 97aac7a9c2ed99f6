"""Figures for a notebook or a paper, such as reliability diagrams, with scikit-learn's methods.

    from utility_calibration.metrics.plots import UtilityDisplay
    UtilityDisplay.reliability(labels, p, TopK()).figure_.savefig("topk.pdf")

They need matplotlib; the rest of the package does not. What draws them needs no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
