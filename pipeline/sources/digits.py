"""The embedded benchmark: scikit-learn's handwritten digits and a small network. No download."""

import warnings

import numpy as np

from ..harness.task import Progress, no_progress
from .source_result import SourceResult


def digits_logits(
    *,
    train_fraction: float = 1 / 3,
    hidden: int = 12,
    iterations: int = 1000,
    learning_rate: float = 0.01,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SourceResult:
    """Train on a seeded part of the 1797 digits; return the logits of all others.

    The network has one hidden layer and no regularisation. It is trained until its training loss is
    nearly zero, which makes it over-confident, as larger networks are.

    Args: those of conf/benchmark/digits.yaml; `progress` is called before and after training.
    """
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, rest = np.split(order, [round(train_fraction * len(labels))])
    network = MLPClassifier(
        (hidden,),
        learning_rate_init=learning_rate,
        alpha=0.0,
        random_state=seed,
        max_iter=iterations,
        n_iter_no_change=iterations,  # without an early stop over-confidence grows
    )
    progress(0, 1, f"training on {len(train)} digits")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping at `iterations` is the plan
        network.fit(pixels[train] / 16, labels[train])
    progress(1, 1, f"training on {len(train)} digits")
    # The network before its softmax; scikit-learn returns probabilities, which saturate.
    (first, second), offsets = network.coefs_, network.intercepts_
    neurons = np.maximum(pixels[rest] / 16 @ first + offsets[0], 0)
    logits = (neurons @ second + offsets[1]).astype(np.float32)
    details = {
        "source": "scikit-learn load_digits (UCI optical recognition of handwritten digits)",
        "model": f"multi-layer perceptron 64-{hidden}-10, trained on {len(train)} digits",
        "preprocessing": "pixels divided by 16",
        "origin": "trained in the logits stage",
        "class_names": [str(digit) for digit in range(10)],
    }
    return SourceResult(logits, labels[rest].astype(np.int64), details)
