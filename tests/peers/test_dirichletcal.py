"""Dirichlet calibration against the objective of dirichletcal, of the authors of the method."""

from __future__ import annotations

import numpy as np
import pytest

from calibrators import DirichletCalibration
from calibrators.reference import penalised_loss
from tests.peers.dirichletcal_minima import PENALTIES, samples

MINIMA = {  # of dirichletcal's objective on ln p, by Newton's method (SciPy's trust-exact)
    ("synthetic", 0.1, 0.1): 0.3640057348,
    ("synthetic", 10.0, 1.0): 0.3660592886,
    ("synthetic", 0.01, 100.0): 0.3643459379,
    ("cifar10", 0.1, 0.1): 0.1350529467,
    ("cifar10", 10.0, 1.0): 0.1762361603,
    ("cifar10", 0.01, 100.0): 0.1265814657,
}
"""`dirichletcal_minima.py` prints what dirichletcal's own solver reaches of them."""
RIDGE = 1e-6
"""Nats that our ridge and tolerance may cost; dirichletcal has no ridge."""
SOLVER = 1e-8
"""How far above the minimum a solver may stop."""


@pytest.mark.parametrize(("odir", "l2"), PENALTIES)
@pytest.mark.parametrize("name", ["synthetic", "cifar10"])
def test_penalised_fits_reach_the_minimum_of_dirichletcal(name, odir, l2, request) -> None:
    folder = request.getfixturevalue("shared_dir") / "logits" if name == "cifar10" else None
    logits, labels = samples(folder)[name]
    fitted = DirichletCalibration(odir=odir, l2=l2, max_iterations=1000).fit(logits, labels)
    point = np.column_stack([fitted.matrix_, fitted.intercept_])
    ours = penalised_loss(logits, labels, point, odir, l2)
    theirs = MINIMA[name, odir, l2]
    assert theirs - SOLVER <= ours <= theirs + RIDGE
