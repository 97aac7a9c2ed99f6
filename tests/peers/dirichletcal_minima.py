"""Minima that dirichletcal's own solver finds, for tests/peers/test_dirichletcal.py.

    python tests/peers/dirichletcal_minima.py /folder/of/dirichletcal-0.3.dev4 [/folder/with/logits]

in this project's environment with jax and autograd beside it. The package can be neither installed
(its metadata are refused) nor imported as it is: JAX and SciPy have removed two names that it uses,
and scikit-learn takes an argument by name only. They are put back here; its model, objective and
solver are as they were. The table is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.peers.penalised import PENALTIES, objective, samples


def solver_of(folder: str) -> Any:
    """dirichletcal's `MultinomialRegression`."""
    import jax
    import scipy.linalg
    import sklearn.preprocessing

    removed: Any = ModuleType("jax.config")
    removed.config = jax.config
    sys.modules["jax.config"] = removed
    scipy.linalg.pinv2 = scipy.linalg.pinv
    binarize = sklearn.preprocessing.label_binarize
    sklearn.preprocessing.label_binarize = lambda labels, classes: binarize(labels, classes=classes)
    sys.path.insert(0, folder)
    from dirichletcal.calib.multinomial import MultinomialRegression

    return MultinomialRegression


def main() -> None:
    """Print the minimum of every sample and pair of penalties."""
    solver = solver_of(sys.argv[1])
    for name, (x, _, labels) in samples(Path(sys.argv[2]) if len(sys.argv) > 2 else None).items():
        for odir, l2 in PENALTIES:
            penalties = {"reg_lambda": odir, "reg_mu": l2, "reg_norm": True, "ref_row": False}
            weights = np.asarray(solver(method="Full", **penalties).fit(x, labels).weights_)
            found = objective(x, labels, weights[:, :-1], weights[:, -1], odir, l2)
            print(f'    ("{name}", {odir}, {l2}): {found:.10f},')


if __name__ == "__main__":
    main()
