"""The composed configuration with types, so that a misspelt key is found by mypy.

Each class is one group of conf/ (conf/benchmark and so on), whose files say what the values mean.
What goes to a calibrator, a source or a metric stays a dictionary: its keys are their arguments.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

Target = dict[str, Any]  # a `_target_` and its arguments


@dataclass(frozen=True)
class Paths:
    data: Path
    results: Path
    precomputed: Path | None


@dataclass(frozen=True)
class Sources:
    """Where the data of the paper's sources lie, and the device of forward passes."""

    imagenet: str
    word_vectors: str | None
    yahoo_model: str
    yahoo_data: str
    checkpoints: str | None
    device: str


@dataclass(frozen=True)
class Benchmark:
    name: str
    title: str
    source: Target
    similarity: Target | None
    published_accuracy: float | None
    precomputed: str | None
    paper_key: str | None
    metrics: list[str] | None


@dataclass(frozen=True)
class Splits:
    """How many random splits, the share that calibrates, and their seed."""

    count: int
    calibration_fraction: float
    seed: int


@dataclass(frozen=True)
class Evaluation:
    name: str
    utilities: int
    floor_utilities: int
    utility_seed: int
    bins: int
    class_weights: str
    utility_batch: int | None
    floor_repetitions: int
    bootstrap_repetitions: int
    noise_seed: int
    own: dict[str, Any]


@dataclass(frozen=True)
class Dynamics:
    name: str
    families: list[str]
    iterations: int
    utilities: int
    snapshots: list[int]
    aligned: dict[str, Any]
    misaligned: dict[str, Any]
    step_size: float
    armijo: float
    floor_draws: int
    seed: int


@dataclass(frozen=True)
class Suite:
    name: str
    benchmarks: list[str]
    calibrators: list[str]
    dynamics: list[str]
    tuning: str


@dataclass(frozen=True)
class Settings:
    """A configuration composed for one benchmark and one calibrator, as plain values."""

    paths: Paths
    sources: Sources
    benchmark: Benchmark
    calibrator: Target
    suite: Suite
    splits: Splits
    evaluation: Evaluation
    dynamics: Dynamics
    tuning: dict[str, Any]
    split: int | None
    seed: int
    jobs: int | str
    device: str
    tables: str
    force: bool
