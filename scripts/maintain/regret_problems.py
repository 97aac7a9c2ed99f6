"""The small problems of `scripts.maintain.regret`: points to fit on, and points to judge by.

Three kinds: made-up points whose true probabilities are known, real logits of a folder, and
classifiers on data sets of scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators import from_probabilities
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.pipeline.harness.artifacts import read_npz

JUDGED = 3000
"""New points of a made-up problem, and the most of any other."""
TRAINED_ON = 400


class Problem(NamedTuple):
    """What a calibrator is fitted on, and what it is judged by.

    logits: [n, C]. labels: [n]. new_logits: [m, C]. truth: [m, C], the true probabilities of the
    new points, or rows of 0 and 1 where only their labels are known.
    """

    logits: NDArray[np.float64]
    labels: NDArray[np.int64]
    new_logits: NDArray[np.float64]
    truth: NDArray[np.float64]


class Source(NamedTuple):
    """Where problems come from: `draw(n_points, random, folder)` makes one."""

    kind: str
    draw: Callable[[int, np.random.Generator, Path], Problem]
    sizes: Sequence[int]


class Cell(NamedTuple):
    """A source, a number of calibration points, and a seed."""

    source: str
    n_points: int
    seed: int

    def problem(self, folder: Path) -> Problem:
        """Draw it; `folder` has the real logits."""
        random = np.random.default_rng([self.seed, self.n_points, *self.source.encode()])
        return SOURCES[self.source].draw(self.n_points, random, folder)


def cells(seeds: int) -> Iterator[Cell]:
    """Every problem, for the seeds 0, 1, …"""
    for name, source in SOURCES.items():
        for n_points in source.sizes:
            for seed in range(seeds):
                yield Cell(name, n_points, seed)


# ---- Made-up points ------------------------------------------------------------------------------


def made_up(
    n_points: int,
    random: np.random.Generator,
    folder: Path,
    *,
    classes: int,
    factor: float = 1.0,
    noise: float = 0.0,
    shift: float = 0.0,
    rare: float = 0.0,
    rows_of_cluster: int = 1,
) -> Problem:
    """Labels of softmax(z), z = 2 N(0, 1), and a forecast by factor · z + noise + class shifts.

    Args:
        factor: above 1 the forecast is too sure of itself.
        noise, shift: standard deviations of what is added to each logit, and to each class.
        rare: what the last class's z is lowered by, which the forecast knows.
        rows_of_cluster: so many points of a cluster have the same z.
    """
    shifts = shift * random.normal(size=classes)

    def drawn(count: int, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        z = 2 * random.normal(size=(-(-count // rows), classes)).repeat(rows, axis=0)[:count]
        z[:, -1] -= rare
        return factor * z + noise * random.normal(size=z.shape) + shifts, softmax(z)

    logits, truth = drawn(n_points, rows_of_cluster)
    cumulated = truth.cumsum(axis=1)
    labels = (cumulated < random.random((n_points, 1))).sum(axis=1).clip(max=classes - 1)
    return Problem(logits, labels, *drawn(JUDGED, 1))


# ---- Real logits ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _stored(path: Path) -> dict[str, NDArray[Any]]:
    return read_npz(path)


def real(n_points: int, random: np.random.Generator, folder: Path, *, name: str) -> Problem:
    """Calibration and new points at random out of `folder`/`name`.npz (`logits`, `labels`)."""
    arrays = _stored(folder / f"{name}.npz")
    order = random.permutation(len(arrays["labels"]))[: n_points + JUDGED]
    logits, labels = arrays["logits"][order].astype(float), arrays["labels"][order]
    return _of_labels(logits, labels, n_points)


def _of_labels(logits: NDArray[Any], labels: NDArray[Any], n_points: int) -> Problem:
    """The first points to fit on, all others to judge by."""
    truth = np.eye(logits.shape[1])[labels[n_points:]]
    return Problem(logits[:n_points], labels[:n_points], logits[n_points:], truth)


# ---- Classifiers on data sets --------------------------------------------------------------------


def trained(
    n_points: int, random: np.random.Generator, folder: Path, *, model: str, data: str
) -> Problem:
    """Train on some rows of a data set, calibrate on others, and judge by the rest."""
    features, labels = _data_set(data, int(random.integers(2**31)))
    order = random.permutation(len(labels))
    train = TRAINED_ON if len(labels) > 2 * TRAINED_ON else len(labels) // 3
    rest = order[train : train + n_points + JUDGED]
    classifier = _model(model, int(random.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logistic regression may stop before it has converged
        classifier.fit(features[order[:train]], labels[order[:train]])
    p = np.zeros((len(rest), int(labels.max()) + 1))  # a rare class may be absent in training
    p[:, classifier.classes_] = classifier.predict_proba(features[rest])
    return _of_labels(from_probabilities(p), labels[rest], n_points)


def _data_set(name: str, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features and labels; `seed` draws those that are made up."""
    from sklearn import datasets

    if name == "digits":
        pixels, labels = datasets.load_digits(return_X_y=True)
        return pixels / 16, labels
    if name == "breast cancer":
        features, labels = datasets.load_breast_cancer(return_X_y=True)
        return features, labels
    options: dict[str, Any] = {"n_features": 20, "n_informative": 8, "random_state": seed}
    if name == "2 % positives":
        options |= {"n_classes": 2, "weights": [0.98], "flip_y": 0.0}
    else:
        options |= {"n_classes": int(name.split()[0]), "n_clusters_per_class": 2, "flip_y": 0.05}
    features, labels = datasets.make_classification(2 * TRAINED_ON + 2000 + JUDGED, **options)
    return features, labels


def _model(name: str, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    models: dict[str, Callable[[], Any]] = {
        "logistic regression": lambda: LogisticRegression(C=100.0, max_iter=200),
        "naive Bayes": lambda: GaussianNB(var_smoothing=1e-3),
        "neighbours": lambda: KNeighborsClassifier(10),
        "forest": lambda: RandomForestClassifier(50, random_state=seed, n_jobs=1),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=50, random_state=seed),
    }
    return models[name]()


SMALL = (60, 200, 500)
MADE_UP, REAL, TRAINED = "made up", "real logits", "classifier"
SOURCES = {
    "50 classes, calibrated": Source(MADE_UP, partial(made_up, classes=50), SMALL),
    "10 classes, too sure": Source(
        MADE_UP, partial(made_up, classes=10, factor=1.6, noise=0.5), (*SMALL, 2000)
    ),
    "8 classes, shifted": Source(MADE_UP, partial(made_up, classes=8, shift=0.7), SMALL),
    "4 classes, clusters of 5": Source(
        MADE_UP, partial(made_up, classes=4, rows_of_cluster=5), SMALL
    ),
    "6 classes, one rare": Source(
        MADE_UP, partial(made_up, classes=6, factor=1.3, rare=5.0), SMALL
    ),
    "CIFAR-10 ResNet-44": Source(REAL, partial(real, name="cifar10_resnet44"), SMALL),
    "CIFAR-10 RepVGG-A0": Source(REAL, partial(real, name="cifar10_repvgg_a0"), (200, 500)),
    "CIFAR-100 ResNet-56": Source(REAL, partial(real, name="cifar100_resnet56"), (200, 500, 2000)),
    "CIFAR-100 RepVGG-A2": Source(REAL, partial(real, name="cifar100_repvgg_a2"), (200, 500)),
    "digits, logistic regression": Source(
        TRAINED, partial(trained, model="logistic regression", data="digits"), SMALL
    ),
    "digits, naive Bayes": Source(
        TRAINED, partial(trained, model="naive Bayes", data="digits"), SMALL
    ),
    "breast cancer, forest": Source(
        TRAINED, partial(trained, model="forest", data="breast cancer"), (60, 200)
    ),
    "2 % positives, naive Bayes": Source(
        TRAINED, partial(trained, model="naive Bayes", data="2 % positives"), SMALL
    ),
    "3 classes, neighbours": Source(
        TRAINED, partial(trained, model="neighbours", data="3 classes"), SMALL
    ),
    "5 classes, boosting": Source(
        TRAINED, partial(trained, model="boosting", data="5 classes"), SMALL
    ),
}
