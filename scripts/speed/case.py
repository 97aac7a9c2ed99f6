"""A case of the speed table: contenders get the same arrays and must give the same answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics import Linear, Rank
from pipeline.sources.synthetic import SyntheticClassifier

SEED = 0
DRAWS = 20
"""Draws of the labels for noise floors."""
PLAIN, OURS = "plain", "ours"


@dataclass(frozen=True)
class Size:
    """Points n, classes C and sampled utilities M (0: none)."""

    n: int
    classes: int
    utilities: int = 0

    def __str__(self) -> str:
        sampled = f", M={self.utilities:,}" if self.utilities else ""
        return f"n={self.n:,}, C={self.classes:,}{sampled}"


@dataclass(frozen=True)
class Data:
    """The inputs of one size on one device, and what is drawn for them."""

    size: Size
    logits: Tensor  # float32 [n, C]
    labels: Tensor  # int64 [n]
    p: Tensor  # float64 [n, C], softmax of the logits
    uniforms: Tensor  # float64 [DRAWS, n]
    linear: Linear | None
    rank: Rank | None

    @property
    def plain(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Probabilities and labels as NumPy arrays."""
        return self.p.cpu().numpy(), self.labels.cpu().numpy()

    @property
    def plain_logits(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits and labels as NumPy arrays."""
        return self.logits.cpu().numpy(), self.labels.cpu().numpy()


@lru_cache(maxsize=2)
def data(size: Size, device: str) -> Data:
    """Draw from a classifier that is as accurate and overconfident as `synthetic_imagenet`'s."""
    classifier = SyntheticClassifier(
        classes=size.classes,
        margin_mean=7.5,
        margin_std=4.0,
        background_std=1.5,
        group_size=5,
        rival_gap=14.0,
        temperature=0.75,
        class_bias=0.3,
        noise=0.3,
    )
    sample = classifier.sample(size.n, SEED)
    logits = torch.from_numpy(sample.logits).to(device)
    generator = torch.Generator().manual_seed(SEED)
    count, classes = size.utilities, size.classes
    return Data(
        size,
        logits,
        torch.from_numpy(sample.labels).to(device),
        logits.double().softmax(dim=1),
        torch.rand((DRAWS, size.n), generator=generator, dtype=torch.float64).to(device),
        Linear.sample(count, classes, SEED) if count else None,
        Rank.sample(count, classes, SEED + 1) if count else None,
    )


Answer = Mapping[str, NDArray[Any]]


def as_array(inputs: Any, result: Any) -> Answer:
    """The answer of a contender that returns an array or a tensor."""
    return {"": np.asarray(result.cpu() if isinstance(result, Tensor) else result, float)}


@dataclass(frozen=True)
class Case:
    """A piece of work. The first contender is the reference; "ours" runs on the GPU, too.

    key: what `--cases` selects.
    contenders: name -> the work that is timed; another package's has the package's name.
    answer: inputs and result -> named arrays to compare; not timed.
    prepare: data -> inputs of the contenders; not timed.
    sizes: those of the whole table; `--quick` has one of its own.
    no_worse: an answer, which is a loss, may be smaller than the reference's.
    steps: "ours" makes so many, and its time is divided by this number.
    note: what is timed on each side, where the title does not say it.
    """

    key: str
    title: str
    contenders: Mapping[str, Callable[[Any], Any]]
    sizes: Sequence[Size]
    tolerance: float = 1e-9
    peer_tolerance: float = 1e-4
    answer: Callable[[Any, Any], Answer] = as_array
    prepare: Callable[[Data], Any] = lambda inputs: inputs
    no_worse: bool = False
    steps: int = 1
    note: str = ""

    def difference(self, reference: Answer, answer: Answer) -> float:
        """The largest difference of numbers that both have; NaN, which is never allowed, if none.

        With `no_worse`, by how much a number exceeds the reference's.
        """
        shared = sorted(reference.keys() & answer.keys())
        gaps = [np.max(self._gap(answer[k] - reference[k])) for k in shared]
        return float(np.max(gaps)) if gaps else float("nan")

    def _gap(self, gap: NDArray[Any]) -> NDArray[Any]:
        return gap if self.no_worse else np.abs(gap)
