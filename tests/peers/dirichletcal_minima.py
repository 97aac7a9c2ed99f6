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
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from calibrators.reference import log_probabilities, penalised_loss
from metrics.archive import read_arrays
from tests.peers.inputs import Size, arrays

PENALTIES = ((0.1, 0.1), (10.0, 1.0), (0.01, 100.0))
"""λ (off-diagonals) and μ (intercepts)."""
POINTS = 1000


def samples(folder: Path | None) -> dict[str, tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Logits and labels: synthetic ones of four classes and, given `folder`, CIFAR-10's."""
    made = arrays(Size(POINTS, 4))
    found = {"synthetic": (made.logits, made.labels)}
    if folder is not None:
        real = read_arrays(folder / "cifar10_resnet56.npz", ("logits", "labels"))
        found["cifar10"] = real["logits"][:POINTS], real["labels"][:POINTS]
    return found


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
    for name, (z, labels) in samples(Path(sys.argv[2]) if len(sys.argv) > 2 else None).items():
        for odir, l2 in PENALTIES:
            penalties = {"reg_lambda": odir, "reg_mu": l2, "reg_norm": True, "ref_row": False}
            fitted = solver(method="Full", **penalties).fit(log_probabilities(z), labels)
            found = penalised_loss(z, labels, np.asarray(fitted.weights_), odir, l2)
            print(f'    ("{name}", {odir}, {l2}): {found:.10f},')


if __name__ == "__main__":
    main()
