"""A classifier whose true calibration is known, because labels are drawn from known probabilities.

Each point has a latent logit vector z. Its label is drawn from softmax(z). The classifier reports
(z + bias per class + noise) / temperature. So a large sample without label noise gives the true
utility calibration of any utility, for any number of points and classes.

In z one class, the leader, exceeds the background by a margin that differs between points. The
other classes of its group are rivals close to it, like similar breeds of dogs.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from utility_calibration.metrics.errors import InputError

from ..harness.task import Progress, no_progress
from .source_result import SourceResult

BLOCK = 2048  # rows drawn from one random stream, so that results depend on the seed alone


class Sample(NamedTuple):
    """Points of a `SyntheticClassifier`."""

    logits: NDArray[np.float32]
    """[n, C], what the classifier reports."""
    labels: NDArray[np.int64]
    """[n], drawn from the truth."""
    true_probabilities: NDArray[np.float64]
    """[n, C]"""


@dataclass(frozen=True)
class SyntheticClassifier:
    """The parameters of truth and distortion in nats; conf/benchmark/synthetic.yaml explains them.

    `bias_seed` fixes the offsets per class: they belong to the classifier, not to a sample.
    """

    classes: int = 10
    margin_mean: float = 3.0
    margin_std: float = 2.5
    background_std: float = 1.0
    group_size: int = 3
    rival_gap: float = 5.0
    temperature: float = 1.0
    class_bias: float = 0.0
    noise: float = 0.0
    bias_seed: int = 0

    def __post_init__(self) -> None:
        for name, above in {"classes": 1, "group_size": 0, "temperature": 0}.items():
            value = getattr(self, name)
            if value <= above:
                raise InputError(f"{value}, expected a number above {above}", field=name)

    def sample(self, count: int, seed: int = 0) -> Sample:
        """Draw `count` points; of one seed, a smaller sample is the start of a larger one."""
        logits, labels, true_probabilities = zip(*self.blocks(count, seed))
        return Sample(
            np.concatenate(logits), np.concatenate(labels), np.concatenate(true_probabilities)
        )

    def blocks(self, count: int, seed: int = 0) -> Iterator[Sample]:
        """The points of `sample(count, seed)`, BLOCK at a time, to save memory."""
        if count < 1:
            raise InputError(f"{count}, expected at least 1", field="samples")
        offsets = np.random.default_rng(self.bias_seed).standard_normal(self.classes)
        for number, start in enumerate(range(0, count, BLOCK)):
            # Whole blocks are drawn, so a smaller sample is the beginning of a larger one.
            random = np.random.default_rng([seed, number])
            latent = self._latent(random)
            truth = softmax(latent.astype(np.float64), axis=1)
            # Inverse distribution function; the minimum is for a last sum that is rounded below 1.
            below = truth.cumsum(axis=1) <= random.random((BLOCK, 1))
            labels = np.minimum(below.sum(axis=1), self.classes - 1)
            noise = random.standard_normal(latent.shape, dtype=np.float32)
            reported = latent + self.class_bias * offsets + self.noise * noise
            logits = (reported / self.temperature).astype(np.float32)
            rows = count - start
            yield Sample(logits[:rows], labels[:rows], truth[:rows])

    def _latent(self, random: np.random.Generator) -> NDArray[np.float32]:
        shape, rows = (BLOCK, self.classes), np.arange(BLOCK)
        latent = random.standard_normal(shape, dtype=np.float32) * np.float32(self.background_std)
        leader = random.integers(self.classes, size=BLOCK)
        margin = random.normal(self.margin_mean, self.margin_std, size=BLOCK)
        # The log of the summed background makes the odds independent of the number of classes.
        top = np.log(self.classes - 1) + self.background_std**2 / 2 + margin
        first = leader - leader % self.group_size
        for place in range(self.group_size):
            rival = np.minimum(first + place, self.classes - 1)
            gap = random.exponential(self.rival_gap, size=BLOCK)
            latent[rows, rival] = np.maximum(latent[rows, rival], top - gap)
        latent[rows, leader] = top
        return latent


def synthetic_logits(
    *, samples: int, seed: int = 0, progress: Progress = no_progress, **classifier: Any
) -> SourceResult:
    """Logits and labels of n = `samples` points; `classifier`: fields of `SyntheticClassifier`."""
    fields = SyntheticClassifier.__dataclass_fields__
    unknown = sorted(classifier.keys() - fields.keys())
    if unknown:
        fix = f"choose among {', '.join(fields)}"
        raise InputError("not a field of the generator", field=unknown[0], fixes=fix)
    spec = SyntheticClassifier(**classifier)
    logits = np.empty((samples, spec.classes), dtype=np.float32)
    labels = np.empty(samples, dtype=np.int64)
    best, done = 0.0, 0
    for block in spec.blocks(samples, seed):
        rows = slice(done, done + len(block.labels))
        logits[rows], labels[rows] = block.logits, block.labels
        best += float(block.true_probabilities.max(axis=1).sum())
        done = rows.stop
        progress(done, samples, "points")
    details = {
        "source": "synthetic, labels drawn from known conditional probabilities",
        "model": "synthetic",
        "preprocessing": None,
        "origin": {**asdict(spec), "samples": samples, "seed": seed},
        "best_possible_accuracy": round(100 * best / samples, 2),
    }
    return SourceResult(logits, labels, details)
