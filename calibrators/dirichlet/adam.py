"""A Dirichlet map as the public baseline code trains it: Adam on small batches that stops early.

That code (docs/fidelity.md) starts at W = I, b = 0 and goes through the points in random order, in
batches of 128, with Adam's usual constants (Kingma & Ba 2015) and a rate of 1e-3. It stops after
500 epochs, or as soon as 15 epochs have not lowered the mean loss of their batches, and then does
the same once more from there with a tenth of the rate. It ends before the optimum, which acts as a
further penalty.
"""

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.threads import one_thread

from ..losses import Loss, block_residuals
from .linear_map import start_point

RATES = (1e-3, 1e-4)
BATCH = 128
EPOCHS = 500  # at most, for each rate
PATIENCE = 15  # epochs without a lower loss, after which a rate ends
MOMENTUM, SQUARES, TINY = 0.9, 0.999, 1e-8  # Adam's β₁, β₂ and ε


class Adam:
    """Adam's steps on one array of parameters, which changes in place."""

    def __init__(self, point: Array, rate: float) -> None:
        self.point, self.rate = point, rate
        self.mean, self.square = np.zeros_like(point), np.zeros_like(point)
        self.steps = 0

    def step(self, gradient: Array) -> None:
        """Move the parameters against `gradient`, an array of their shape, which is overwritten."""
        self.steps += 1
        self.mean *= MOMENTUM
        self.mean += (1 - MOMENTUM) * gradient
        gradient *= gradient
        self.square *= SQUARES
        self.square += (1 - SQUARES) * gradient
        root = np.sqrt(self.square)
        root /= np.sqrt(1 - SQUARES**self.steps)
        root += TINY
        np.divide(self.mean, root, out=root)
        root *= self.rate / (1 - MOMENTUM**self.steps)
        self.point -= root


def fit_by_adam(
    inputs: Array,
    labels: Array,
    shares: Array,
    penalties: Array,
    loss: Loss,
    seed: int,
) -> tuple[Array, int]:
    """Return W and b, float64 [C, C + 1], and the number of epochs.

    `inputs` are float64 [n, C], `labels` int64 [n], and `shares` [n] the weights of the rows, of
    mean 1. `penalties` [C, C + 1] weigh the squared entries of W and b. `seed` draws the order of
    the points in each epoch.
    """
    n, classes = inputs.shape
    point = start_point(classes, 1.0)
    random = np.random.default_rng(seed)
    epochs = 0
    with one_thread(True):
        for rate in RATES:
            adam = Adam(point, rate)
            best, waited = np.inf, 0
            for _ in range(EPOCHS):
                order = random.permutation(n)
                batches = [order[start : start + BATCH] for start in range(0, n, BATCH)]
                losses = []
                for rows in batches:
                    value, gradient = _penalised(
                        inputs[rows], labels[rows], shares[rows], point, penalties, loss
                    )
                    losses.append(value)
                    adam.step(gradient)
                epochs += 1
                mean = float(np.mean(losses))
                waited = 0 if mean < best else waited + 1
                best = min(best, mean)
                if waited == PATIENCE:
                    break
    return point, epochs


def _penalised(
    inputs: Array, labels: Array, shares: Array, point: Array, penalties: Array, loss: Loss
) -> tuple[float, Array]:
    """Return a batch's mean loss + Σ penalties · point², and the gradient by `point`."""
    n, classes = inputs.shape
    mapped = inputs @ point[:, :classes].T
    mapped += point[:, classes]
    value = block_residuals(mapped, labels, shares, loss) / n
    # `mapped` now holds the gradient by the logits of the summed loss.
    pull = penalties * point
    value += float(np.vdot(pull, point))
    gradient = np.empty_like(point)
    gradient[:, :classes] = mapped.T @ inputs
    gradient[:, classes] = mapped.sum(axis=0)
    gradient /= n
    gradient += 2.0 * pull
    return value, gradient
