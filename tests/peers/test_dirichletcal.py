"""Dirichlet calibration against dirichletcal, of the authors of the method: the same minima."""

from __future__ import annotations

import numpy as np
import pytest

from calibrators import DirichletCalibration
from calibrators.reference import penalised_loss
from tests.peers.dirichletcal_minima import PENALTIES, samples

MINIMA = {  # by dirichletcal_minima.py with dirichletcal 0.3.dev4
    ("synthetic", 0.1, 0.1): 0.3655781340,
    ("synthetic", 10.0, 1.0): 0.3667667798,
    ("synthetic", 0.01, 100.0): 0.3655644720,
    ("cifar10", 0.1, 0.1): 0.1367913041,
    ("cifar10", 10.0, 1.0): 0.1802024056,
    ("cifar10", 0.01, 100.0): 0.1292519234,
}
RIDGE = 1e-6
"""Nats that our ridge and tolerance may cost; dirichletcal has no ridge."""
SOLVER = 1e-8
"""How far above its minimum dirichletcal's solver may stop."""


@pytest.mark.parametrize(("odir", "l2"), PENALTIES)
@pytest.mark.parametrize("name", ["synthetic", "cifar10"])
def test_penalised_fits_reach_the_minimum_of_dirichletcal(name, odir, l2, request) -> None:
    folder = request.getfixturevalue("shared_dir") / "logits" if name == "cifar10" else None
    logits, labels = samples(folder)[name]
    fitted = DirichletCalibration(odir=odir, l2=l2).fit(logits, labels)
    point = np.column_stack([fitted.matrix_, fitted.intercept_])
    ours = penalised_loss(logits, labels, point, odir, l2)
    theirs = MINIMA[name, odir, l2]
    assert theirs - SOLVER <= ours <= theirs + RIDGE
